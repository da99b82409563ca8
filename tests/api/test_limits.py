"""Bounds of one process: requests at once, sizes and speeds of bodies, clients that leave."""

import asyncio
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import httpx
import pytest
from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from shardqa.api import limits, problems
from shardqa.api.access import Access
from shardqa.api.faults import ClientLeft
from shardqa.api.limits import MAX_DOCUMENTS_BODY, Limits, SendDeadlines
from shardqa.api.metrics import Metrics
from shardqa.api.requests import until_disconnect
from tests.api.conftest import Serve, Server, problem, read_all

SLOW = b"GET /v1/slow HTTP/1.1\r\nHost: x\r\n\r\n"


class Slow:
    """An app that works until it is let go, and notes what became of its work."""

    def __init__(self) -> None:
        self.go = threading.Event()
        self.started = threading.Semaphore(0)
        self.cancelled = threading.Event()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        body = await request.body()
        try:
            await until_disconnect(request, self.work(request.url.path))
        except ClientLeft:
            return
        await PlainTextResponse(f"{len(body)}")(scope, receive, send)

    async def work(self, path: str) -> None:
        if not path.endswith("/slow"):
            return
        self.started.release()
        try:
            while not self.go.is_set():  # noqa: ASYNC110 (a threading.Event, set by the test's thread)
                await asyncio.sleep(0.005)
        except asyncio.CancelledError:
            self.cancelled.set()
            raise


@pytest.fixture
def slow() -> Iterator[Slow]:
    slow = Slow()
    yield slow
    slow.go.set()


@pytest.fixture
def metrics() -> Metrics:
    return Metrics()


def behind(app: ASGIApp, metrics: Metrics) -> ASGIApp:
    """The app behind the limits, two requests at once."""
    held = Limits(2, metrics)

    async def served(scope: Scope, receive: Receive, send: Send) -> None:
        bound = MAX_DOCUMENTS_BODY if scope["path"] == "/v1/documents" else limits.MAX_BODY
        await held.serve(app, bound, scope, receive, send)

    return Access(SendDeadlines(served), metrics)


@pytest.fixture
def server(slow: Slow, metrics: Metrics, serve: Serve) -> Server:
    return serve(behind(slow, metrics))


@pytest.fixture
def client(server: Server) -> Iterator[httpx.Client]:
    with server.client() as client:
        yield client


def test_one_more_than_the_limit_is_refused_at_once_and_served_later(
    slow: Slow, client: httpx.Client, metrics: Metrics
) -> None:
    with ThreadPoolExecutor(2) as pool:
        calls = [pool.submit(client.get, "/v1/slow") for _ in range(2)]
        for _ in calls:
            assert slow.started.acquire(timeout=60)
        refused = client.get("/v1/more")
        slow.go.set()
        assert [one.result().status_code for one in calls] == [200, 200]
    problem(refused, 429, "too_many_requests")
    assert int(refused.headers["Retry-After"]) >= 1
    assert client.get("/v1/more").status_code == 200
    assert b'shardqa_http_rejected_total{code="too_many_requests"} 1.0' in metrics.text()


def test_a_client_that_leaves_ends_its_work_and_frees_its_place(
    slow: Slow, server: Server, client: httpx.Client
) -> None:
    with ThreadPoolExecutor(1) as pool:
        stays = pool.submit(client.get, "/v1/slow")
        assert slow.started.acquire(timeout=60)
        with server.connect(SLOW):
            assert slow.started.acquire(timeout=60)
        assert slow.cancelled.wait(10)
        assert client.get("/v1/free").status_code == 200
        slow.go.set()
        assert stays.result().status_code == 200


def test_a_body_reaches_the_app_whole(client: httpx.Client) -> None:
    assert client.post("/v1/x", content=b"y" * 1_500_000).text == "1500000"
    assert client.post("/v1/x", content=iter([b"y" * 1000] * 7)).text == "7000"
    assert client.post("/v1/x", content=b"").text == "0"


def test_a_large_reply_arrives_whole(serve: Serve, metrics: Metrics) -> None:
    body = bytes(range(256)) * 20_001
    server = serve(behind(Response(body), metrics))
    reply = httpx.get(server.url + "/v1/x")
    assert reply.content == body
    assert reply.headers["Content-Length"] == str(len(body))


def test_documents_may_be_larger_than_questions(client: httpx.Client) -> None:
    size = limits.MAX_BODY + 1
    assert client.post("/v1/documents", content=b"y" * size).text == str(size)
    assert client.post("/v1/ask", content=b"y" * size).status_code == 413


def test_a_body_that_says_it_is_too_large_is_refused_unread(server: Server) -> None:
    reply = server.exchange(b"POST /v1/documents HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999\r\n\r\n")
    assert b"413" in reply.split(b"\r\n", 1)[0]
    assert b"body_too_large" in reply


def test_a_body_that_turns_out_too_large_is_refused(client: httpx.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_BODY", 10_000)
    reply = client.post("/v1/ask", content=iter([b"y" * 6_000] * 2))
    assert "10,000" in problem(reply, 413, "body_too_large")["detail"]


@pytest.mark.parametrize(("bound", "is_room_for_others"), [("MAX_BODIES", False), ("MAX_BODIES_OF_OWNER", True)])
def test_the_sum_of_bodies_is_bounded_and_given_back(
    slow: Slow,
    server: Server,
    client: httpx.Client,
    monkeypatch: pytest.MonkeyPatch,
    bound: str,
    is_room_for_others: bool,
) -> None:
    monkeypatch.setattr(limits, bound, 1_500_000)
    body = b"y" * 1_000_000
    with (
        ThreadPoolExecutor(1) as pool,
        server.client(transport=httpx.HTTPTransport(local_address="127.0.0.2")) as other,
    ):
        holder = pool.submit(client.post, "/v1/slow", content=body)
        assert slow.started.acquire(timeout=60)
        problem(client.post("/v1/x", content=body), 429, "too_many_requests")
        assert other.post("/v1/x", content=body).status_code == (200 if is_room_for_others else 429)
        slow.go.set()
        assert holder.result().status_code == 200
    assert client.post("/v1/x", content=body).status_code == 200


def test_a_body_that_stalls_is_given_up_and_holds_no_place(
    server: Server, client: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "BODY_PAUSE", 0.1)
    monkeypatch.setattr(limits, "DISCARD_SECONDS", 0.1)
    with server.connect(b"POST /v1/ask HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nhalf") as sender:
        assert client.get("/v1/free").status_code == 200
        reply = read_all(sender)
    assert b"408" in reply.split(b"\r\n", 1)[0]
    assert b"slow_body" in reply


def test_a_client_that_does_not_read_is_given_up_and_no_fault_of_the_server(
    serve: Serve, metrics: Metrics, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(limits, "SEND_SECONDS", 0.1)
    app = FastAPI()
    problems.install(app)

    @app.get("/v1/large")
    async def large() -> Response:
        return Response(b"y" * 50_000_000)

    end = threading.Event()
    size = 0

    async def noted(scope: Scope, receive: Receive, send: Send) -> None:
        async def counted(message: Message) -> None:
            nonlocal size
            size += len(message.get("body", b""))
            await send(message)

        await behind(app, metrics)(scope, receive, counted)
        end.set()

    with serve(noted).connect(b"GET /v1/large HTTP/1.1\r\nHost: x\r\n\r\n"):
        assert end.wait(10)
    assert size < 50_000_000
    assert "Traceback" not in caplog.text


LARGE = b"GET /v1/large HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"


@pytest.fixture
def large(serve: Serve, metrics: Metrics) -> Server:
    """Serves 20 MB under /v1/large, more than a socket's buffers take."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        size = 20_000_000 if scope["path"] == "/v1/large" else 1
        await Response(b"y" * size)(scope, receive, send)

    return serve(behind(app, metrics))


def head_of(connection: socket.socket) -> bytes:
    """What comes first of a reply: from then on the client reads no more."""
    return connection.recv(1_000)


def test_clients_that_do_not_read_hold_no_places(large: Server) -> None:
    with ExitStack() as stack:
        for _ in range(3):
            assert b"200 OK" in head_of(stack.enter_context(large.connect(LARGE)))
        assert httpx.get(large.url + "/v1/small").status_code == 200


@pytest.mark.parametrize("bound", ["MAX_UNREAD", "MAX_UNREAD_OF_OWNER"])
def test_who_has_not_read_for_longest_is_given_up_where_unread_replies_are_too_large(
    large: Server, monkeypatch: pytest.MonkeyPatch, bound: str
) -> None:
    monkeypatch.setattr(limits, bound, 30_000_000)
    with large.connect(LARGE) as first:
        head_of(first)
        with large.connect(LARGE) as second:
            head_of(second)
            assert len(read_all(first)) < 20_000_000
            assert len(read_all(second)) > 19_900_000


def test_many_clients_that_leave_leave_nothing_behind(slow: Slow, server: Server, client: httpx.Client) -> None:
    for _ in range(20):
        with server.connect(SLOW):
            assert slow.started.acquire(timeout=60)
        deadline = time.monotonic() + 10
        while not slow.cancelled.is_set() and time.monotonic() < deadline:
            time.sleep(0.002)
        slow.cancelled.clear()
    assert client.get("/v1/free").status_code == 200
