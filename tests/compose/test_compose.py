"""`docker compose up --build` for real: each node is killed in turn, the data outlasts `down`, nothing runs as root.

Run by `make test-compose`, not by `make test`: it takes some ten minutes. Where there is no Docker engine with Compose
it skips and says so. Figures are printed at the end. It makes a project of its own name and removes it with its data.
"""

import json
import os
import secrets
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.nodes import free_port

ROOT = Path(__file__).parents[2]
PROJECT = "shardqa-test"
NODES = [f"node-{n}" for n in range(1, 7)]
CORPUS = "compose"
DOCUMENTS = {
    f"{name.lower()}.md": f"The mill of {name} was built in {year} by Ada Holm. It ground rye and barley."
    for year, name in enumerate(("Brennick", "Oakline", "Saltmere", "Ysolde", "Tarn", "Weir", "Holm", "Quay"), 1820)
}
QUESTION, ANSWER = "When was the mill of Brennick built?", "1820"
UP_SECONDS = 900.0  # images are built and their libraries fetched
FAILOVER_SECONDS = 120.0  # the cluster's node timeout is 5 s; the machine may be slow
pytestmark = pytest.mark.timeout(1800)

figures: dict[str, str] = {}


class Compose:
    def __init__(self) -> None:
        self.port = free_port()
        password = secrets.token_hex(16)
        self._environment = {**os.environ, "REDIS_PASSWORD": password, "SHARDQA_PUBLISHED_PORT": str(self.port)}
        self.http = httpx.Client(base_url=f"http://127.0.0.1:{self.port}", timeout=30)

    def __call__(self, *words: str, check: bool = True) -> str:
        command = ["docker", "compose", "-p", PROJECT, *words]
        done = subprocess.run(command, cwd=ROOT, env=self._environment, capture_output=True, text=True, check=False)
        assert not check or done.returncode == 0, f"{words}: {done.stderr[-3000:]}"
        return done.stdout

    def inspect(self) -> list[dict[str, Any]]:
        ids = self("ps", "--all", "--quiet").split()
        found: list[dict[str, Any]] = json.loads(subprocess.check_output(["docker", "inspect", *ids]))
        return found

    def up(self) -> float:
        """Seconds until every shard answers."""
        start = time.monotonic()
        self("up", "--build", "--detach")
        self.until(lambda: self.ready(), "the cluster is ready", UP_SECONDS)
        return time.monotonic() - start

    def ready(self) -> bool:
        reply = self.http.get("/readyz")
        return reply.status_code == 200 and reply.json()["status"] == "ready"

    def in_sync(self) -> bool:
        """Whether every replica has what its master has: who kills a master before that loses documents."""
        for node in NODES:
            told = self("exec", "-T", node, "redis-cli", "info", "replication", check=False)
            if "role:master" not in told and "master_link_status:up" not in told:
                return False
        return True

    def ask(self, question: str = QUESTION) -> Any:
        reply = self.http.post("/v1/ask", json={"question": question, "corpus": CORPUS, "fresh": True})
        return reply.json() if reply.status_code == 200 else None

    def is_whole(self) -> bool:
        answer = self.ask()
        return bool(answer) and answer["answer"] == ANSWER and not answer["partial"]

    def until(self, condition: Callable[[], bool], what: str, seconds: float) -> float:
        start = time.monotonic()
        while True:
            try:
                if condition():
                    return time.monotonic() - start
            except httpx.TransportError:
                pass
            if time.monotonic() - start > seconds:
                pytest.fail(
                    f"waited {seconds:.0f} s in vain: {what}\n{self('ps', '--all')}\n{self('logs', '--tail=20')}"
                )
            time.sleep(0.1)


@pytest.fixture(scope="module")
def compose() -> Iterator[Compose]:
    _need_docker()
    compose = Compose()
    try:
        figures["up --build until ready"] = f"{compose.up():.0f} s"
        for id_, text in DOCUMENTS.items():
            reply = compose.http.post("/v1/documents", json={"id": id_, "text": text, "corpus": CORPUS})
            assert reply.status_code == 201, reply.text
        yield compose
    finally:
        compose("down", "--volumes", "--timeout", "5", check=False)
        print("\n" + "\n".join(f"{name}: {value}" for name, value in figures.items()))


def _need_docker() -> None:
    if shutil.which("docker") is None:
        pytest.skip("there is no docker in PATH")
    for command in (["docker", "info"], ["docker", "compose", "version"]):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            last = done.stderr.strip().splitlines()[-1:] or ["no reason given"]
            pytest.skip(f"{' '.join(command)} fails: {last[0]}")


def test_a_question_is_answered(compose: Compose) -> None:
    answer = compose.ask()
    assert (answer["answer"], answer["document"], answer["partial"]) == (ANSWER, "brennick.md", False)


def test_nothing_runs_as_root_or_may_gain_rights(compose: Compose) -> None:
    for container in compose.inspect():
        host = container["HostConfig"]
        assert container["Config"]["User"] == "10001:10001", container["Name"]
        assert host["ReadonlyRootfs"]
        assert not host["Privileged"]
        assert host["CapDrop"] == ["ALL"]
        assert "no-new-privileges:true" in host["SecurityOpt"]
        if container["State"]["Running"]:
            table = subprocess.check_output(["docker", "top", container["Id"], "-eo", "pid,uid,comm"], text=True)
            users = {line.split()[1] for line in table.splitlines()[1:]}
            assert users == {"10001"}, table


@pytest.mark.parametrize("service", ["node-1", "api"])
def test_root_file_systems_are_read_only(compose: Compose, service: str) -> None:
    for place in ("/", "/opt/shardqa", "/usr/bin", "/etc"):
        tried = compose("exec", "-T", service, "sh", "-c", f"touch {place}/new 2>&1 || echo refused", check=False)
        assert "refused" in tried
        assert "Read-only file system" in tried or "Permission denied" in tried
    assert compose("exec", "-T", service, "sh", "-c", "touch /tmp/new && echo done").strip() == "done"


def test_the_password_is_no_argument_of_any_process(compose: Compose) -> None:
    password = compose._environment["REDIS_PASSWORD"]
    for container in compose.inspect():
        if container["State"]["Running"]:
            assert password not in subprocess.check_output(
                ["docker", "top", container["Id"], "-eo", "pid,args"], text=True
            )


def test_only_the_api_is_published_and_only_here(compose: Compose) -> None:
    ports = {
        (container["Config"]["Labels"]["com.docker.compose.service"], binding["HostIp"])
        for container in compose.inspect()
        for bindings in (container["NetworkSettings"]["Ports"] or {}).values()
        for binding in bindings or ()
    }
    assert ports == {("api", "127.0.0.1")}


@pytest.mark.parametrize("node", NODES)
def test_a_killed_node_costs_no_document(compose: Compose, node: str) -> None:
    compose.until(lambda: compose.in_sync() and compose.ready(), "all is well before", FAILOVER_SECONDS)
    compose("kill", "--signal", "KILL", node)
    try:
        any_ = compose.until(lambda: compose.ask() is not None, "some answer comes", FAILOVER_SECONDS)
        whole = compose.until(compose.is_whole, f"{node} is replaced", FAILOVER_SECONDS)
    finally:
        compose("start", node)
    back = compose.until(compose.in_sync, f"{node} is back", FAILOVER_SECONDS)
    times = (f"an answer after {any_:.1f} s", f"a whole one after {any_ + whole:.1f} s", f"in sync {back:.1f} s after")
    figures[f"{node} killed"] = ", ".join(times) + " its start"


def test_the_data_outlasts_down_and_up(compose: Compose) -> None:
    before = compose.http.get("/v1/corpora").json()
    compose("down", "--timeout", "30")
    figures["down, up until ready"] = f"{compose.up():.0f} s"
    compose.until(compose.is_whole, "the answer is there again", FAILOVER_SECONDS)
    after = compose.http.get("/v1/corpora").json()
    sizes = [[(one["name"], one["documents"], one["passages"]) for one in told["corpora"]] for told in (before, after)]
    assert sizes[0] == sizes[1] == [(CORPUS, len(DOCUMENTS), len(DOCUMENTS))]
