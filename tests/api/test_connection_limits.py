"""Connections that are no requests yet: bounded in number, time and size, and health is answered all the same."""

import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress

import pytest

from shardqa.api import connection_limits
from shardqa.api.connection_limits import ConnectionLimits
from shardqa.api.http_protocol import MAX_HEAD, MAX_URL
from tests.api.conftest import NOBODY, Server, StartApi, read_all, running_api

PART = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Part: "
WHOLE = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
SLOW_BODY = b"POST /v1/ask HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\nx"
UNREAD = b"GET /static/swagger/swagger-ui-bundle.js HTTP/1.1\r\nHost: localhost\r\n\r\n" * 16  # 20 MB, past all buffers
FEW = "from shardqa.api import connection_limits as it; it.CONNECTIONS = it.PER_ADDRESS = 20"
HASTY = "from shardqa.api import http_protocol as it; it.HEAD_SECONDS = 2; it.UNREAD_SECONDS = 1"


@pytest.fixture(scope="module")
def few(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Takes 20 connections."""
    with running_api(tmp_path_factory.mktemp("few"), FEW, redis=NOBODY) as server:
        yield server


@pytest.fixture(scope="module")
def hasty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Waits a short while for a head, and for a reply to be read."""
    with running_api(tmp_path_factory.mktemp("hasty"), HASTY, redis=NOBODY) as server:
        yield server


@pytest.fixture
def connect(few: Server) -> Iterator[Callable[[bytes], socket.socket]]:
    with ExitStack() as stack:
        yield lambda sent: stack.enter_context(few.connect(sent))


def is_healthy(server: Server) -> bool:
    with server.client() as client:
        return client.get("/healthz").status_code == 200


@pytest.mark.parametrize("sent", [b"", PART, WHOLE, SLOW_BODY, UNREAD])
def test_connections_that_wait_give_way_to_new_ones(
    few: Server, connect: Callable[[bytes], socket.socket], sent: bytes
) -> None:
    first = connect(sent)
    held = [connect(sent) for _ in range(100)]
    assert is_healthy(few)
    if sent != UNREAD:
        assert b"200 OK" in read_all(first) or sent != WHOLE  # and the oldest has gone
    assert len(held) == 100


class Waiting:
    """Plays a connection that waits for its client."""

    def __init__(self, owner: str, limits: ConnectionLimits) -> None:
        self.owner, self._limits, self.is_cut = owner, limits, False
        self.is_in = limits.enter(self)

    def cut(self) -> None:
        self.is_cut = True
        self._limits.leave(self)


def test_an_address_with_too_many_connections_gives_way_itself() -> None:
    limits = ConnectionLimits(connections=10, per_address=2)
    others = [Waiting("192.0.2.1", limits)]
    own = [Waiting("192.0.2.2", limits) for _ in range(4)]
    assert [connection.is_cut for connection in own] == [True, True, False, False]
    assert [connection.is_cut for connection in others] == [False]
    assert all(connection.is_in for connection in own)


@pytest.mark.parametrize(
    ("head", "status", "code"),
    [
        (PART + b"x" * 2 * MAX_HEAD, 431, b"head_too_large"),  # before it is all there
        (PART + b"x" * MAX_HEAD + b"\r\n\r\n", 431, b"head_too_large"),
        (b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * 200 + b"\r\n", 431, b"head_too_large"),
        (b"GET /" + b"x" * MAX_URL + b" HTTP/1.1\r\n\r\n", 414, b"url_too_long"),
    ],
)
def test_a_head_past_its_bounds_is_refused_with_a_problem(few: Server, head: bytes, status: int, code: bytes) -> None:
    reply = few.exchange(head)
    assert reply.startswith(b"HTTP/1.1 %d " % status)
    assert b"application/problem+json" in reply
    assert code in reply


@pytest.mark.parametrize("sent", [PART, b"\r\n", WHOLE + PART])
def test_a_head_that_does_not_come_is_given_up(hasty: Server, sent: bytes) -> None:
    """However slowly it comes: each part is no reason to wait longer."""
    reply, deadline = b"", time.monotonic() + 30
    with hasty.connect(sent) as sender, suppress(ConnectionError):
        sender.settimeout(0.1)
        while time.monotonic() < deadline:
            try:
                part = sender.recv(65_536)
                reply += part
                if not part:
                    break
            except TimeoutError:
                sender.sendall(b"\r\n" if sent == b"\r\n" else b"x")
    assert b"slow_head" in reply


def test_a_kept_connection_serves_many_requests(few: Server) -> None:
    with few.client() as client:
        assert {client.get("/healthz").status_code for _ in range(100)} == {200}


def send_slowly(sender: socket.socket) -> None:
    for _ in range(200):
        sender.send(b"G")
        time.sleep(0.1)


def test_a_client_that_reads_no_reply_is_cut(hasty: Server) -> None:
    with hasty.connect(UNREAD) as sender, pytest.raises(ConnectionError):
        send_slowly(sender)


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


def test_health_is_answered_where_descriptors_are_few(start_api: StartApi) -> None:
    server = start_api(FEW, redis=NOBODY)
    command = ["prlimit", "--nofile=256:256", "--pid", str(server.pid)]
    limit = subprocess.run(command, capture_output=True, check=False)
    if limit.returncode:
        pytest.skip(f"prlimit: {limit.stderr.decode()}")
    with ExitStack() as stack:
        for _ in range(600):
            stack.enter_context(server.connect())
        assert is_healthy(server)
