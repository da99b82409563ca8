"""The file docker-compose.yml as Compose reads it, and what its nodes are started with; no engine is needed."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from tests.nodes import free_port

ROOT = Path(__file__).parents[2]


def resolved(**variables: str) -> Any:
    """The services. Skips where there is no Compose."""
    command = ["docker", "compose", "-f", str(ROOT / "docker-compose.yml"), "config", "--format", "json"]
    if (
        shutil.which("docker") is None
        or subprocess.run([*command[:2], "version"], capture_output=True, check=False).returncode
    ):
        pytest.skip("there is no docker with Compose in PATH")
    kept = {name: value for name, value in os.environ.items() if not name.startswith("SHARDQA_")}
    environment = {**kept, "REDIS_PASSWORD": "secret", **variables}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=60)
    return json.loads(done.stdout)["services"]


def started_with(node: Any, folder: Path) -> list[str]:
    """The words that a node's shell gives to redis-server."""
    fake = folder / "redis-server"
    fake.write_text("#!/bin/sh\nprintf '%s\\n' \"$@\"\n")
    fake.chmod(0o755)
    shell, option, script = node["command"]
    script = script.replace("$$", "$").replace("/tmp/secret.conf", str(folder / "secret.conf"))
    environment = {"PATH": f"{folder}{os.pathsep}{os.environ['PATH']}", "REDISCLI_AUTH": "secret"}
    done = subprocess.run([shell, option, script], env=environment, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


@pytest.mark.parametrize("shared", [True, False])
def test_nodes_share_large_models_where_they_are_told_to(tmp_path: Path, shared: bool) -> None:
    services = resolved(**({"SHARDQA_SHARE_MODELS": "1"} if shared else {}))
    nodes = [services[name] for name in sorted(services) if name.startswith("node-")]
    assert len(nodes) == 6
    for node in nodes:
        words = started_with(node, tmp_path)
        assert words[words.index("PYEXECUTE") :] == ["PYEXECUTE", "yes", *(["MODELS", "/models"] if shared else [])]
        volumes = {volume["target"]: volume["source"] for volume in node["volumes"]}
        assert volumes["/models"] == "models"
        assert volumes["/data"].startswith("node-")


def test_the_image_has_the_folder_that_its_user_writes_to() -> None:
    assert "install -d -o shardqa -g shardqa /data /models" in (ROOT / "Dockerfile").read_text()


def test_the_image_alone_is_a_cluster_with_the_api(tmp_path: Path) -> None:
    """The image's own command, as it stands in the Dockerfile, outside a container."""
    (words,) = re.findall(r"^CMD (.*)$", (ROOT / "Dockerfile").read_text(), re.MULTILINE)
    shell, option, script = json.loads(words)
    port = free_port()
    script = script.replace("--data /data", f"--data {tmp_path} --shards 1 --port {port} --http {free_port()}")
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "SHARDQA_HTTP_KEYS": "none"}
    command = [shell, option, script]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as up:
        try:
            assert up.stdout is not None
            lines = iter(up.stdout.readline, "")
            ready = next((line for line in lines if line.startswith("ready: ")), "it ended before it was ready")
            (address,) = re.findall(r"http://127\.0\.0\.1:\d+", ready)
            assert httpx.get(f"{address}/readyz").json()["status"] == "ready"
        finally:
            up.terminate()
            up.communicate(timeout=60)


def test_the_metrics_profile_mounts_what_is_there_and_publishes_to_this_machine_alone() -> None:
    services = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]
    profile = {name: one for name, one in services.items() if one.get("profiles") == ["metrics"]}
    assert set(profile) == {"prometheus", "grafana"}
    for one in profile.values():
        assert re.fullmatch(r"[\w/]+:v?\d+\.\d+\.\d+", one["image"])
        assert all(port.startswith("127.0.0.1:") for port in one["ports"])
        mounts = [mount.split(":")[0] for mount in one["volumes"] if mount.startswith("./")]
        assert all((ROOT / mount).exists() for mount in mounts)
    (targets,) = yaml.safe_load((ROOT / "deploy/prometheus/compose.yml").read_text())["scrape_configs"][0][
        "static_configs"
    ]
    assert targets["targets"] == ["api:8080"]
    assert services["api"]["environment"]["SHARDQA_HTTP_HOSTS"] == "api"
