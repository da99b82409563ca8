"""Sections: the main thread serves one function of the worker, and no other frame or client comes between."""

import json
from typing import Any

import pytest

from .servers import Make, Server, in_sync, replicate, until  # noqa: TID251 (this package is tests/module)

SCRIPT = "return redis.pcall('RG.TRIGGER', unpack(ARGV))"


def sync(server: Server, *triggers: str) -> None:
    server.register("sync", *([f"sync-{t}", "CommandReader", "", t, [], [], [], "sync"] for t in triggers))


def pcall(server: Server, *words: str) -> Any:
    return server.client().eval(SCRIPT, 0, *words)


def test_what_is_sent_outside_waits_until_the_section_ends(server: Server) -> None:
    inside, outside = [["INCR", "n"], ["GET", "x"]], [["SET", "x", "out"]]
    replies, late = server.order("section", "7", json.dumps(inside), json.dumps(outside))
    assert replies.startswith(b"+OK\r\n:1\r\n$-1\r\n:2\r\n$-1\r\n+OK\r\n-TIMEOUT")  # the last frame came after UNLOCK
    assert late == b"+OK\r\n"
    assert server.client().mget("n", "x") == [b"2", b"out"]
    assert server.info()["sections"] == 1


def test_a_section_past_its_deadline_is_ended_and_its_commands_are_refused(server: Server) -> None:
    replies, late = server.order("section", "9", json.dumps([["INCR", "n"]]), json.dumps([["SET", "x", "1"]]), "1.3")
    assert replies.startswith(b"+OK\r\n:1\r\n-TIMEOUT")
    assert replies.count(b"-TIMEOUT") == 3
    assert late == b"+OK\r\n"
    assert server.client().mget("n", "x") == [b"1", b"1"]
    assert server.info()["sections_closed"] == 1


def test_a_lock_waits_for_the_end_of_a_pause(make: Make) -> None:
    server = make()
    client = server.client()
    connection = server.client().connection_pool.get_connection()
    connection.send_command("RG.TRIGGER", "read_late", "n")  # the worker is busy until the pause has begun
    server.block()
    connection.disconnect()
    server.unblock()
    client.execute_command("CLIENT", "PAUSE", "300", "WRITE")
    assert client.get("n") is None
    waiting = server.send("RG.TRIGGER", "section", "5", json.dumps([["INCR", "n"]]), json.dumps([["PING"]]))
    assert waiting.read_response()[0].startswith(b"+OK\r\n:1")


def test_a_sync_trigger_answers_a_script_and_a_transaction(make: Make) -> None:
    master = make()
    replica = replicate(make, master)
    sync(master, "call", "raw")
    assert pcall(master, "call", json.dumps([["INCR", "n"]])) == 1
    pipe = master.client().pipeline(transaction=True)
    pipe.set("a", 1)
    pipe.execute_command("RG.TRIGGER", "call", json.dumps([["INCR", "n"]]))
    assert pipe.get("n").execute() == [True, 2, b"2"]
    assert pcall(master, "raw", "*2\r\n:1\r\n$1\r\nx\r\n") == [1, b"x"]
    in_sync(master, replica)
    assert replica.client().mget("a", "n") == [b"1", b"2"]
    master.restart()
    assert master.client().mget("a", "n") == [b"1", b"2"]


@pytest.mark.parametrize(("words", "error"), [
    (("hang",), "TIMEOUT"), (("die",), "TRYAGAIN"),
    (("raw", "no resp"), "can't be read"), (("echo",), "can not run a non-sync execution"),
])  # fmt: skip
def test_what_comes_in_place_of_an_answer(server: Server, words: tuple[str, ...], error: str) -> None:
    sync(server, "hang", "die", "raw")
    assert error in server.error("EVAL", SCRIPT, 0, *words)
    until(lambda: server.info()["worker_state"] == "ready")
    assert server.client().ping()
    assert pcall(server, "raw", "+OK\r\n") == b"OK"


def test_a_section_in_a_read_only_script_is_refused(server: Server) -> None:
    sync(server, "call")
    script = "return redis.pcall('RG.TRIGGER', 'call', ARGV[1])"
    assert "read-only" in server.error("EVAL_RO", script, 0, json.dumps([["INCR", "n"]]))
