"""Connections that are no requests yet: bounded in number, time and size, and health is answered all the same."""

import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from shardqa.api import connection_limits
from shardqa.api.http_protocol import MAX_HEAD, MAX_URL

from .conftest import Server, running_api  # noqa: TID251 (this package is tests/api)

PART = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Part: "
WHOLE = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
SLOW_BODY = b"POST /v1/ask HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\nx"
UNREAD = b"GET /static/swagger/swagger-ui-bundle.js HTTP/1.1\r\nHost: localhost\r\n\r\n" * 16  # 20 MB, past all buffers
FEW = "from shardqa.api import connection_limits as it; it.CONNECTIONS = it.PER_ADDRESS = 20"
HASTY = "from shardqa.api import http_protocol as it; it.HEAD_SECONDS = 2; it.UNREAD_SECONDS = 1"


@pytest.fixture(scope="module")
def few(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Takes 20 connections."""
    with running_api(tmp_path_factory.mktemp("few"), FEW, redis="127.0.0.1:1") as server:
        yield server


@pytest.fixture(scope="module")
def hasty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Waits a short while for a head, and for a reply to be read."""
    with running_api(tmp_path_factory.mktemp("hasty"), HASTY, redis="127.0.0.1:1") as server:
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


@pytest.mark.parametrize("sent", [b"", PART, WHOLE, SLOW_BODY])
def test_connections_that_wait_give_way_to_new_ones(
    few: Server, connect: Callable[[bytes], socket.socket], sent: bytes
) -> None:
    first = connect(sent)
    held = [connect(sent) for _ in range(100)]
    with few.client() as client:
        assert client.get("/healthz").status_code == 200
    assert b"200 OK" in reply_of(first) or sent != WHOLE  # and the oldest has gone
    assert len(held) == 100


def test_health_is_answered_while_no_reply_is_read(few: Server, connect: Callable[[bytes], socket.socket]) -> None:
    held = [connect(UNREAD) for _ in range(100)]
    with few.client() as client:
        assert client.get("/healthz").status_code == 200
    assert len(held) == 100


def test_a_head_that_is_too_large_is_refused_before_it_is_all_there(connect: Callable[[bytes], socket.socket]) -> None:
    reply = reply_of(connect(PART + b"x" * 2 * MAX_HEAD))
    assert reply.startswith(b"HTTP/1.1 431 ")
    assert b"head_too_large" in reply


@pytest.mark.parametrize(
    ("head", "status", "code"),
    [
        (PART + b"x" * MAX_HEAD + b"\r\n\r\n", 431, b"head_too_large"),
        (b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * 200 + b"\r\n", 431, b"head_too_large"),
        (b"GET /" + b"x" * MAX_URL + b" HTTP/1.1\r\n\r\n", 414, b"url_too_long"),
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
    while time.monotonic() - start < 30:
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


def test_a_client_that_reads_no_reply_is_cut(hasty: Server) -> None:
    with socket.create_connection(("127.0.0.1", hasty.port), timeout=20) as sender:
        sender.sendall(UNREAD)
        with pytest.raises(ConnectionError):
            _send_slowly(sender)


def _send_slowly(sender: socket.socket) -> None:
    for _ in range(200):
        sender.send(b"G")
        time.sleep(0.1)


@pytest.mark.parametrize(
    ("address", "owner"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("2001:db8:1:2:3::4", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
    ],
)
def test_addresses_of_one_client_count_as_one(address: str, owner: str) -> None:
    assert connection_limits.owner_of(address) == owner


def test_health_is_answered_where_descriptors_are_few(start_api: Callable[..., Server]) -> None:
    server = start_api(FEW, redis="127.0.0.1:1")
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
