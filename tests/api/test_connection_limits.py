"""Connections that are no requests yet: bounded in number, time and size, and health is answered all the same."""

import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from shardqa.api import connection_limits

from .conftest import Server, running_api  # noqa: TID251 (this package is tests/api)

PART = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Part: "
WHOLE = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"


HEAD_SECONDS = 2  # of `hasty`


@pytest.fixture(scope="module")
def few(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Takes 20 connections."""
    bounds = {"http_connections": 20, "http_connections_per_address": 20}
    with running_api(tmp_path_factory.mktemp("few"), redis="127.0.0.1:1", **bounds) as server:
        yield server


@pytest.fixture(scope="module")
def hasty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Waits a short while for a head."""
    with running_api(tmp_path_factory.mktemp("hasty"), redis="127.0.0.1:1", http_head_seconds=HEAD_SECONDS) as server:
        yield server


@pytest.fixture
def connect(few: Server) -> Iterator[Callable[[bytes], socket.socket]]:
    with ExitStack() as stack:

        def connect(sent: bytes) -> socket.socket:
            made = stack.enter_context(socket.create_connection(("127.0.0.1", few.port), timeout=20))
            made.sendall(sent)
            return made

        yield connect


def reply_of(connection: socket.socket) -> bytes:
    """All until the server closes; empty where it reset."""
    try:
        return b"".join(iter(lambda: connection.recv(65_536), b""))
    except ConnectionError:
        return b""


@pytest.mark.parametrize("sent", [b"", PART, WHOLE])
def test_connections_that_wait_give_way_to_new_ones(
    few: Server, connect: Callable[[bytes], socket.socket], sent: bytes
) -> None:
    first = connect(sent)
    held = [connect(sent) for _ in range(200)]
    with few.client() as client:
        assert client.get("/healthz").status_code == 200
    assert b"200 OK" in reply_of(first) or sent != WHOLE  # and the oldest has gone
    assert len(held) == 200


def test_a_head_that_is_too_large_is_refused_before_it_is_all_there(connect: Callable[[bytes], socket.socket]) -> None:
    sender = connect(PART)
    sent = 0
    try:
        while sent < 64 * connection_limits.MAX_HEAD:
            sent += sender.send(b"x" * 65_536)
    except ConnectionError:
        pass
    assert sent < 64 * connection_limits.MAX_HEAD


@pytest.mark.parametrize(
    ("head", "status", "code"),
    [
        (PART + b"x" * connection_limits.MAX_HEAD + b"\r\n\r\n", 431, b"head_too_large"),
        (b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * 200 + b"\r\n", 431, b"head_too_large"),
        (b"GET /" + b"x" * connection_limits.MAX_URL + b" HTTP/1.1\r\n\r\n", 414, b"url_too_long"),
        (b"\x16\x03\x01 this is TLS\r\n\r\n", 400, b"bad_http"),
    ],
)
def test_a_head_past_its_bounds_is_refused_with_a_problem(
    connect: Callable[[bytes], socket.socket], head: bytes, status: int, code: bytes
) -> None:
    reply = reply_of(connect(head))
    assert reply.startswith(b"HTTP/1.1 %d " % status)
    assert b"application/problem+json" in reply
    assert code in reply


@pytest.mark.parametrize("sent", [PART, b"\r\n", WHOLE + PART])
def test_a_head_that_does_not_come_is_given_up(hasty: Server, sent: bytes) -> None:
    """However slowly it comes: each part is no reason to wait longer."""
    sender = socket.create_connection(("127.0.0.1", hasty.port), timeout=20)
    sender.sendall(sent)
    start = time.monotonic()
    sender.settimeout(0.1)
    got = b""
    while time.monotonic() - start < 15 * HEAD_SECONDS:
        try:
            part = sender.recv(65_536)
        except TimeoutError:
            try:
                sender.sendall(b"\r\n" if sent == b"\r\n" else b"x")
            except ConnectionError:
                break
            continue
        except ConnectionError:
            break
        got += part
        if not part:
            break
    sender.close()
    assert b"slow_head" in got


def test_a_kept_connection_serves_many_requests(few: Server) -> None:
    with few.client() as client:
        assert {client.get("/healthz").status_code for _ in range(100)} == {200}


def test_a_pipeline_of_thousands_is_cut_and_not_kept_in_memory(connect: Callable[[bytes], socket.socket]) -> None:
    reply = reply_of(connect(WHOLE * 5_000))
    assert reply.count(b"200 OK") <= 5 * connection_limits.PIPELINED


def test_health_is_answered_where_descriptors_are_few(start_api: Callable[..., Server]) -> None:
    server = start_api(redis="127.0.0.1:1", http_connections=20, http_connections_per_address=20)
    port = server.port
    limit = subprocess.run(
        ["prlimit", "--nofile=256:256", "--pid", str(_pid_of(port))], capture_output=True, check=False
    )
    if limit.returncode:
        pytest.skip(f"prlimit: {limit.stderr.decode()}")
    with ExitStack() as stack:
        for _ in range(600):
            stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=5))
        with server.client() as client:
            assert client.get("/healthz").status_code == 200


def _pid_of(port: int) -> int:
    """The process that listens there."""
    inode = next(
        line.split()[9]
        for line in Path("/proc/net/tcp").read_text().splitlines()[1:]
        if line.split()[1].endswith(f":{port:04X}") and line.split()[3] == "0A"
    )
    for process in Path("/proc").iterdir():
        if process.name.isdigit():
            try:
                if any(f"socket:[{inode}]" in str(fd.readlink()) for fd in (process / "fd").iterdir()):
                    return int(process.name)
            except OSError:
                continue
    raise AssertionError(f"nobody listens on {port}")
