"""Real HTTP: `python -m shardqa.api` in a process of its own, or a small ASGI app under uvicorn in a thread."""

import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import pytest
import uvicorn
from redis import RedisCluster
from starlette.types import ASGIApp

from shardqa import api_keys
from shardqa.api_keys import NewKey
from tests.nodes import free_port, wait_until

if TYPE_CHECKING:
    from shardqa.cluster.local import LocalCluster
    from shardqa.engine import Engine

START_SECONDS = 30.0


@dataclass(frozen=True)
class Server:
    port: int
    log_file: Path | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def client(self, **options: Any) -> httpx.Client:
        return httpx.Client(base_url=self.url, timeout=30, **options)

    def log(self) -> str:
        assert self.log_file is not None
        return self.log_file.read_text()


def wait_for_status(client: httpx.Client, path: str, status: int) -> httpx.Response:
    """The reply once it has this status."""
    deadline = time.monotonic() + START_SECONDS
    while (reply := client.get(path)).status_code != status:
        assert time.monotonic() < deadline, f"{path} still replies {reply.status_code}: {reply.text}"
        time.sleep(0.05)
    return reply


def wait_until_alive(server: Server, failed: Callable[[], bool]) -> None:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        assert not failed(), f"the server ended: {server.log() if server.log_file else ''}"
        try:
            with socket.create_connection(("127.0.0.1", server.port), timeout=1):
                return
        except OSError:
            time.sleep(0.02)
    pytest.fail(f"no server on port {server.port} after {START_SECONDS} s")


@contextmanager
def running_api(folder: Path, before: str = "", **settings: object) -> Iterator[Server]:
    """`python -m shardqa.api` with SHARDQA_* from `settings`, after the Python statements of `before`."""
    server = Server(free_port(), folder / "api.log")
    kept = {name: value for name, value in os.environ.items() if not name.startswith("SHARDQA_")}
    given = {f"SHARDQA_{name.upper()}": str(value) for name, value in settings.items()}
    env = {**kept, **given, "SHARDQA_HTTP_PORT": str(server.port)}
    program = ["-c", f"{before}\nfrom shardqa.api.__main__ import main; main()"] if before else ["-m", "shardqa.api"]
    with (folder / "api.log").open("wb") as log:
        process = subprocess.Popen([sys.executable, *program], env=env, stdout=log, stderr=log)
    try:
        wait_until_alive(server, lambda: process.poll() is not None)
        yield server
    finally:
        process.terminate()
        process.wait(20)


@contextmanager
def running_app(app: ASGIApp) -> Iterator[Server]:
    """Any ASGI app under uvicorn, in a thread of this process."""
    server = Server(free_port())
    runner = uvicorn.Server(
        uvicorn.Config(
            app, port=server.port, log_level="critical", lifespan="off", ws="none", timeout_graceful_shutdown=1
        )
    )
    thread = threading.Thread(target=runner.run, daemon=True)
    thread.start()
    try:
        wait_until_alive(server, lambda: not thread.is_alive())
        yield server
    finally:
        runner.should_exit = True
        thread.join(20)


@pytest.fixture
def serve() -> Iterator[Callable[[ASGIApp], Server]]:
    with ExitStack() as stack:
        yield lambda app: stack.enter_context(running_app(app))


@pytest.fixture
def start_api(tmp_path: Path) -> Iterator[Callable[..., Server]]:
    """API processes with settings of a test's own: `start_api(redis="127.0.0.1:1")`."""
    with ExitStack() as stack:

        def start(before: str = "", **settings: object) -> Server:
            folder = tmp_path / f"api-{time.monotonic_ns()}"
            folder.mkdir()
            return stack.enter_context(running_api(folder, before, **settings))

        yield start


@pytest.fixture(scope="session")
def lonely(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """An API whose cluster is not there: nothing listens on its port."""
    with running_api(tmp_path_factory.mktemp("lonely"), redis=f"127.0.0.1:{free_port()}") as server:
        yield server


@pytest.fixture
def alone(lonely: Server) -> Iterator[httpx.Client]:
    with lonely.client() as client:
        yield client


@pytest.fixture(scope="session")
def api(cluster: "LocalCluster", tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """An API on the shared cluster: name the `corpus` fixture's corpus in each request."""
    with running_api(tmp_path_factory.mktemp("api"), redis=cluster.seed(), timeout=30) as server:
        yield server


@pytest.fixture
def http(api: Server) -> Iterator[httpx.Client]:
    with api.client() as client:
        yield client


def cluster_client(cluster: "LocalCluster") -> Any:
    host, _, port = cluster.seed().rpartition(":")
    return RedisCluster(host=host, port=int(port))


@pytest.fixture(scope="session")
def locked(cluster: "LocalCluster", tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """An API that asks everybody for a key; one stands in Redis, or it would not start."""
    made, key = api_keys.make(NewKey(name="root", scopes=["admin"]))
    with cluster_client(cluster) as client:
        client.hset("apikeys", made.id, made.model_dump_json())
    with running_api(tmp_path_factory.mktemp("locked"), redis=cluster.seed(), http_keys="all") as server:
        assert server.log_file is not None
        (server.log_file.parent / "root").write_text(key)
        yield server


@pytest.fixture
def root(locked: Server) -> Iterator[httpx.Client]:
    assert locked.log_file is not None
    key = (locked.log_file.parent / "root").read_text()
    with locked.client(headers=bearer(key)) as client:
        yield client


def bearer(key: str) -> dict[str, str]:
    return {"authorization": f"Bearer {key}"}


async def made_key(engine: "Engine", **wanted: Any) -> tuple[str, str]:
    """(id, the key)."""
    made, key = await engine.create_key(NewKey(name="test", **wanted))
    return made.id, key


def wait_for_key(server: Server, key: str) -> None:
    """Until the server has read the keys anew."""
    with server.client(headers=bearer(key)) as client:
        wait_until(lambda: client.get("/v1/corpora").status_code != 401, "the keys are read anew")


@pytest.fixture
def filled(root: httpx.Client, corpus: str) -> str:
    for name, year in (("Ada", 1871), ("Bob", 1901)):
        text = f"The mill was built by {name} Holm in {year}."
        sent = {"id": name, "corpus": corpus, "text": text, "metadata": {"year": year}}
        assert root.post("/v1/documents", json=sent).status_code == 201
    return corpus
