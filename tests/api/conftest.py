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

from shardqa.cluster.local import LocalCluster
from shardqa.engine import api_keys
from shardqa.engine.api_keys import NewKey
from tests.api.browser import Watched, running_browser
from tests.certificates import certificates
from tests.nodes import free_port, wait_until

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

START_SECONDS = 120.0  # on a machine that does much else
NOBODY = "127.0.0.1:1"  # a port that nothing listens on

Fields = dict[str, Any]


@dataclass(frozen=True)
class Server:
    port: int
    log_file: Path | None = None
    pid: int | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def client(self, **options: Any) -> httpx.Client:
        return httpx.Client(base_url=self.url, timeout=90, **options)

    def log(self) -> str:
        assert self.log_file is not None
        return self.log_file.read_text()

    def connect(self, sent: bytes = b"") -> socket.socket:
        connection = socket.create_connection(("127.0.0.1", self.port), timeout=60)
        connection.sendall(sent)
        return connection

    def exchange(self, sent: bytes) -> bytes:
        with self.connect(sent) as connection:
            return read_all(connection)


StartApi = Callable[..., Server]
Serve = Callable[[ASGIApp], Server]


def read_all(connection: socket.socket) -> bytes:
    """All bytes until the server closes; nothing where it reset."""
    try:
        return b"".join(iter(lambda: connection.recv(65_536), b""))
    except ConnectionError:
        return b""


def problem(reply: httpx.Response, status: int, code: str) -> Fields:
    """The problem of a reply, after the checks that hold for every problem."""
    assert reply.headers["Content-Type"] == "application/problem+json"
    body: Fields = reply.json()
    assert (reply.status_code, body["status"], body["code"]) == (status, status, code)
    assert body["type"] == f"/docs#{code}"
    assert body["instance"] == f"urn:uuid:{reply.headers['X-Request-Id']}"
    assert body["title"]
    assert body["detail"]
    assert body["remedy"]
    return body


def wait_for_status(client: httpx.Client, path: str, status: int) -> httpx.Response:
    """The reply once it has this status."""
    found: httpx.Response = wait_until(
        lambda: reply if (reply := client.get(path)).status_code == status else None, f"{path} replies {status}"
    )
    return found


def wait_until_alive(server: Server, failed: Callable[[], bool]) -> None:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        assert not failed(), f"the server ended: {server.log() if server.log_file else ''}"
        try:
            server.connect().close()
        except OSError:
            time.sleep(0.02)
        else:
            return
    pytest.fail(f"no server on port {server.port} after {START_SECONDS} s")


def environment(**settings: object) -> dict[str, str]:
    """This process' environment, with SHARDQA_* from `settings` alone."""
    others = {name: value for name, value in os.environ.items() if not name.startswith("SHARDQA_")}
    return others | {f"SHARDQA_{name.upper()}": str(value) for name, value in settings.items()}


@contextmanager
def running_api(folder: Path, before: str = "", **settings: object) -> Iterator[Server]:
    """`python -m shardqa.api` with SHARDQA_* from `settings`, after the Python statements of `before`."""
    port, log_file = free_port(), folder / "api.log"
    program = ["-c", f"{before}\nfrom shardqa.api.__main__ import main; main()"] if before else ["-m", "shardqa.api"]
    env = environment(**settings, http_port=port)
    with log_file.open("wb") as log:
        process = subprocess.Popen([sys.executable, *program], env=env, stdout=log, stderr=log)
    server = Server(port, log_file, process.pid)
    try:
        wait_until_alive(server, lambda: process.poll() is not None)
        yield server
    finally:
        process.terminate()
        process.wait(90)


def refused_start(*flags: str, folder: Path | None = None, env: dict[str, str]) -> str:
    """The words of `python -m shardqa.api` when it does not start."""
    command = [sys.executable, "-m", "shardqa.api", *flags]
    ended = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 1
    assert "Traceback" not in ended.stderr
    return ended.stderr


@contextmanager
def running_app(app: ASGIApp) -> Iterator[Server]:
    """Any ASGI app under uvicorn, in a thread of this process."""
    server = Server(free_port())
    options: Fields = {"log_level": "critical", "lifespan": "off", "ws": "none", "timeout_graceful_shutdown": 1}
    runner = uvicorn.Server(uvicorn.Config(app, port=server.port, **options))
    thread = threading.Thread(target=runner.run, daemon=True)
    thread.start()
    try:
        wait_until_alive(server, lambda: not thread.is_alive())
        yield server
    finally:
        runner.should_exit = True
        thread.join(20)


@pytest.fixture
def serve() -> Iterator[Serve]:
    with ExitStack() as stack:
        yield lambda app: stack.enter_context(running_app(app))


@pytest.fixture
def start_api(tmp_path: Path) -> Iterator[StartApi]:
    """API processes with settings of a test's own: `start_api(redis="127.0.0.1:1")`."""
    with ExitStack() as stack:

        def start(before: str = "", **settings: object) -> Server:
            folder = tmp_path / f"api-{time.monotonic_ns()}"
            folder.mkdir()
            return stack.enter_context(running_api(folder, before, **settings))

        yield start


@pytest.fixture(scope="session")
def certificate_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("certificates")
    certificates(folder)
    return folder


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
def api(cluster: LocalCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """An API on the shared cluster: name the `corpus` fixture's corpus in each request."""
    with running_api(tmp_path_factory.mktemp("api"), redis=cluster.seed(), timeout=90) as server:
        yield server


@pytest.fixture
def http(api: Server) -> Iterator[httpx.Client]:
    with api.client() as client:
        yield client


# ---- two documents, and questions about them

MILL = (
    "🌾 The mill of Ōtani stands by the river 水. Ada Holm founded the mill in 1871 with money she had won at cards. "
    "It grinds rye, barley and 𝕨heat. In 1904 a flood carried its wheel to the sea."
)
TOWER = (
    "The tower of Brack has ninety-nine steps. Its bell, called Old Susan, was cast by Piet Vermeer in 1632. "
    "Nobody lives in the tower, but a family of storks comes every spring."
)
Put = Callable[..., httpx.Response]


@pytest.fixture
def put(http: httpx.Client, corpus: str) -> Put:
    """Posts one document into this test's corpus."""
    return lambda text, **fields: http.post("/v1/documents", json={"corpus": corpus, "text": text, **fields})


@pytest.fixture
def buildings(put: Put, corpus: str) -> str:
    """This test's corpus, with the mill and the tower."""
    assert put(MILL, id="mill", title="The mill").status_code == 201
    assert put(TOWER, id="tower").status_code == 201
    return corpus


# ---- keys


def cluster_client(cluster: LocalCluster) -> Any:
    host, _, port = cluster.seed().rpartition(":")
    return RedisCluster(host=host, port=int(port))


def store_key(cluster: LocalCluster, **fields: Any) -> tuple[str, str]:
    """The id of a new key, and the key."""
    made, key = api_keys.make(NewKey(name="test", **fields))
    with cluster_client(cluster) as client:
        client.hset("apikeys", made.id, made.model_dump_json())
    return made.id, key


@pytest.fixture(scope="session")
def root_key(cluster: LocalCluster) -> str:
    return store_key(cluster, scopes=["admin"])[1]


@pytest.fixture(scope="session")
def locked(cluster: LocalCluster, root_key: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """An API that asks everybody for a key; one stands in Redis, or it would not start."""
    assert root_key
    with running_api(tmp_path_factory.mktemp("locked"), redis=cluster.seed(), http_keys="all") as server:
        yield server


@pytest.fixture(scope="session")
def root(locked: Server, root_key: str) -> Iterator[httpx.Client]:
    with locked.client(headers=bearer(root_key)) as client:
        yield client


def bearer(key: str | None) -> dict[str, str]:
    return {"authorization": f"Bearer {key}"} if key else {}


KeyOf = Callable[..., str]


@pytest.fixture(scope="session")
def key_of(locked: Server, cluster: LocalCluster) -> KeyOf:
    """A new key, once the API has read the keys anew: `key_of(scopes=["ask"])`."""

    def key_of(**fields: Any) -> str:
        _, key = store_key(cluster, **fields)
        with locked.client(headers=bearer(key)) as client:
            wait_until(lambda: client.get("/v1/corpora").status_code != 401, "the keys are read anew")
        return key

    return key_of


@pytest.fixture
def filled(root: httpx.Client, corpus: str) -> str:
    """This test's corpus, with a mill of 1871 and one of 1901."""
    for name, year in (("Ada", 1871), ("Bob", 1901)):
        text = f"The mill was built by {name} Holm in {year}."
        sent = {"id": name, "corpus": corpus, "text": text, "metadata": {"year": year}}
        assert root.post("/v1/documents", json=sent).status_code == 201
    return corpus


# ---- a browser


@pytest.fixture(scope="module")
def browser() -> Iterator["Browser"]:
    with running_browser() as browser:
        yield browser


OpenPage = Callable[..., "Page"]


@pytest.fixture
def open_page(browser: "Browser") -> Iterator[OpenPage]:
    """Opens pages of a server; afterwards no page may have met an error or asked another server for anything."""
    pages: list[tuple[Watched, str]] = []

    def open_page(server: Server, path: str | None = None, **options: Any) -> "Page":
        watched = Watched(browser, server.url, **options)
        pages.append((watched, server.url))
        if path is not None:
            watched.page.goto(path)
        return watched.page

    yield open_page
    for watched, url in pages:
        watched.context.close()
        assert watched.errors == []
        assert [address for address in watched.requests if not address.startswith((url, "data:"))] == []


@pytest.fixture
def page(open_page: OpenPage, api: Server) -> "Page":
    return open_page(api, permissions=["clipboard-read", "clipboard-write"])
