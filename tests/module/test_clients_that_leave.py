"""A client that leaves frees its request, and the worker hears of it."""

import pytest

from .servers import Server, until  # noqa: TID251 (this package is tests/module)

REQUESTS = ["RG.TRIGGER hang", "GET answer:1", "HSET h:1 f v", "SET h:event 1", "AI.MODELSTORE n ONNX CPU BLOB SLOW"]


def hold(server: Server) -> None:
    """The worker answers none of REQUESTS."""
    server.register(
        "all",
        ["all-1", "KeysReader", "answer:*", "", ["keymiss"], [], ["get r 1 1"]],
        ["all-2", "CommandReader", "h:*", "", [], [], ["hset w 1 1"]],
        ["all-3", "KeysReader", "h:*", "", ["set"], [], ["set w 1 1"]],
    )
    server.order("misses", "hold")
    server.block()


@pytest.mark.parametrize("killed", [False, True])
def test_its_request_is_freed_and_cancelled(server: Server, killed: bool) -> None:
    hold(server)
    for number, line in enumerate(REQUESTS, 1):
        connection = server.send("CLIENT", "ID")
        name = connection.read_response()
        connection.send_command(*line.split())
        server.waiting(1)
        server.client().client_kill_filter(_id=name) if killed else connection.disconnect()
        server.waiting(0)
        info = server.info()
        assert (info["cancelled"], info["pending_requests"], info["pending_misses"]) == (number, 0, 0), line
    server.unblock()
    until(lambda: len(server.seen("CANCEL")) == len(REQUESTS))


def test_a_model_whose_client_left_is_not_stored(server: Server) -> None:
    hold(server)
    connection = server.send("AI.MODELSTORE", "slow", "ONNX", "CPU", "BLOB", "SLOW")
    server.waiting(1)
    connection.disconnect()
    server.waiting(0)
    server.unblock()
    until(lambda: server.info()["late_replies"] == 1)
    assert server.client().exists("slow") == 0
    assert server.info()["models"] == 0
    until(lambda: [f[2] for f in server.seen("MODELDROP")] == [server.seen("MODELLOAD")[0][2]])


def test_others_that_wait_for_the_same_miss_go_on(server: Server) -> None:
    server.hook(mode="hold")
    *leaving, staying = (server.send("GET", "answer:1") for _ in range(5))
    server.waiting(5)
    for connection in leaving:
        connection.disconnect()
    server.waiting(1)
    assert not server.seen("CANCEL")
    server.order("release")
    assert staying.read_response() == b"value of answer:1"


def test_after_all_have_left_a_miss_is_computed_afresh(server: Server) -> None:
    server.hook(mode="hold")
    connection = server.send("GET", "answer:1")
    server.waiting(1)
    connection.disconnect()
    until(lambda: server.info()["pending_misses"] == 0)
    server.order("misses", "answer")
    assert server.client().get("answer:1") == b"value of answer:1"
    assert len(server.seen("CANCEL")) == 1
