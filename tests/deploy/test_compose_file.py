"""The file docker-compose.yml as Compose reads it, and what its nodes are started with; no engine is needed."""

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

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
