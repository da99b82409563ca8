"""Ten ways in which a module can crash or end Redis 7.0 (C1 to C10), each tried with an AOF and a replica attached."""

import os
import signal
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from .servers import Make, Server, command, in_sync, until  # noqa: TID251 (this package is tests/module)

Pair = tuple[Server, Server]


def later(function: Any, *arguments: Any) -> tuple[threading.Thread, list[Any]]:
    """Runs it in a thread; its result, or what it raised, is put in the list."""
    results: list[Any] = []

    def work() -> None:
        try:
            results.append(function(*arguments))
        except Exception as error:  # noqa: BLE001 - the test looks at it
            results.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    return thread, results


def test_c1_a_write_of_the_worker_reaches_replica_and_aof(pair: Pair) -> None:
    master, replica = pair
    assert master.call(["SET", "a", "1"], ["INCR", "n"], ["INCR", "n"]) == b"+OK\r\n:1\r\n:2\r\n"
    in_sync(master, replica)
    assert replica.client().mget("a", "n") == [b"1", b"2"]
    assert b"MULTI" in master.aof()
    assert master.aof().count(b"EXEC") == 1
    master.restart(signal.SIGKILL)
    assert master.client().mget("a", "n") == [b"1", b"2"]


def test_c1_one_write_alone_is_no_transaction(pair: Pair) -> None:
    master, _ = pair
    master.call(["SET", "a", "1"])
    assert b"MULTI" not in master.aof()


def test_c2_reading_an_expired_key_deletes_it_on_the_replica_too(pair: Pair) -> None:
    master, replica = pair
    master.client().execute_command("DEBUG", "SET-ACTIVE-EXPIRE", "0")
    master.client().set("a", "1", px=1)
    time.sleep(0.02)
    assert master.call(["GET", "a"]) == b"$-1\r\n"
    in_sync(master, replica)
    assert replica.client().dbsize() == 0
    assert b"DEL" in master.aof() or b"UNLINK" in master.aof()  # Valkey frees expired keys later


def test_c3_a_write_waits_for_the_end_of_a_pause_and_its_reply_does_not(pair: Pair) -> None:
    master, replica = pair
    client = master.client()
    master.hook(mode="store")
    client.client_pause(60_000, all=False)
    assert client.get("answer:1") == b"value of answer:1"
    until(lambda: master.info()["deferred_bytes"] > 0)
    assert client.exists("answer:1") == 0
    client.client_unpause()
    until(lambda: client.exists("answer:1"))
    in_sync(master, replica)
    assert replica.client().get("answer:1") == b"value of answer:1"


def test_c3_calls_that_only_read_go_on_during_a_pause(server: Server) -> None:
    server.hook(mode="store")
    server.client().set("x", "1")
    server.block()
    thread, results = later(server.order, "read_late", "x")
    server.waiting(1)
    server.client().client_pause(60_000, all=False)
    server.unblock()
    thread.join(10)
    assert results == [b"$1\r\n1\r\n"]
    server.client().client_unpause()


def test_c3_a_pause_of_writes_holds_triggers_back(server: Server) -> None:
    server.client().client_pause(60_000, all=False)
    thread, results = later(server.order, "echo", "x")
    time.sleep(0.05)
    assert not results
    server.client().client_unpause()
    thread.join(10)
    assert results == [[b"x"]]


def test_c3_after_a_failover_waiting_writes_are_refused_not_run(pair: Pair) -> None:
    master, replica = pair
    master.hook(mode="store")
    in_sync(master, replica)
    os.kill(replica.pid(), signal.SIGSTOP)
    assert master.client().set("x", "1")
    master.client().execute_command("FAILOVER", "TO", "127.0.0.1", replica.port, "TIMEOUT", 10_000)
    until(lambda: master.client().info("replication")["master_failover_state"] != "no-failover")
    assert master.client().get("answer:1") == b"value of answer:1"
    until(lambda: master.info()["deferred_bytes"] > 0)
    os.kill(replica.pid(), signal.SIGCONT)
    until(lambda: master.client().info("replication")["role"] == "slave")
    until(lambda: master.info()["deferred_bytes"] == 0)
    until(lambda: master.client().info("replication")["master_link_status"] == "up")
    assert master.client().exists("answer:1") == 0
    assert replica.client().get("x") == b"1"
    assert [f[2] for f in master.seen("ROLE")] == ["replica"]
    assert replica.client().get("answer:2") == b"value of answer:2" or replica.order("misses") >= 1


def test_c3_a_shutdown_that_waits_for_a_replica_meets_no_write(pair: Pair) -> None:
    master, replica = pair
    master.hook(mode="store")
    in_sync(master, replica)
    os.kill(replica.pid(), signal.SIGSTOP)
    master.client().set("x", "1")
    os.kill(master.pid(), signal.SIGTERM)
    until(lambda: master.client().info("server").get("shutdown_in_milliseconds"))
    assert master.client().get("answer:1") == b"value of answer:1"
    until(lambda: master.info()["deferred_bytes"] > 0)
    os.kill(replica.pid(), signal.SIGCONT)
    assert master.ended() == 0


def test_c5_waiting_commands_in_an_aof_do_not_end_the_server(server: Server) -> None:
    server.hook()
    server.stop()
    (file,) = (server.folder / "appendonlydir").glob("*.incr.aof")
    with file.open("ab") as aof:
        aof.write(command("RG.TRIGGER", "echo", "x") + command("GET", "answer:1") + command("shardqa.get", "answer:1"))
        aof.write(command("AI.MODELSTORE", "m", "ONNX", "CPU", "BLOB", "bytes") + command("RG._UNREGISTER", "none"))
        aof.write(command("AI.MODELEXECUTE", "m", "INPUTS", "1", "t", "OUTPUTS", "1", "o") + command("SET", "x", "1"))
    server.start()
    assert server.client().get("x") == b"1"
    assert server.client().execute_command("AI.MODELGET", "m", "BLOB") == b"bytes"


@pytest.mark.parametrize(
    "words",
    [
        ["RESTORE", "k", "0", "garbage"],
        ["restore-asking", "k", "0", "garbage"],
        ["EVAL", "return redis.call('RESTORE', 'k', '0', 'x')", "0"],
        ["MIGRATE", "127.0.0.1", "1", "k", "0", "1"],
        ["SHUTDOWN"],
        ["DEBUG", "SEGFAULT"],
        ["MULTI"],
        ["CLIENT", "PAUSE", "1000"],
        ["CONFIG", "SET", "maxmemory", "1"],
        ["CLUSTER", "RESET"],
        ["SUBSCRIBE", "c"],
        ["RG._REGISTER", "x"],
        [""],
        ["nosuchcommand"],
        ["x" * 1000],
    ],
)
def test_c6_commands_that_could_end_the_server_are_refused_to_functions(shared: Pair, words: list[str]) -> None:
    assert shared[0].call(words).startswith(b"-ERR")


@pytest.fixture(params=["tensor", "model"])
def dump(shared: Pair, request: pytest.FixtureRequest) -> Iterator[bytes]:
    """A value's dump, on a server that looks at no checksum meanwhile."""
    client = shared[0].client()
    client.execute_command("AI.TENSORSET", "tensor", "FLOAT", "2", "VALUES", "1", "2")
    client.execute_command("AI.MODELSTORE", "model", "ONNX", "CPU", "TAG", "v1", "BLOB", "the bytes of a model")
    client.execute_command("DEBUG", "SET-SKIP-CHECKSUM-VALIDATION", "1")
    yield bytes(client.dump(request.param))
    client.execute_command("DEBUG", "SET-SKIP-CHECKSUM-VALIDATION", "0")


def test_c10_a_damaged_dump_is_refused_at_any_cut(shared: Pair, dump: bytes) -> None:
    client = shared[0].client()
    client.delete("copy")
    body, footer = dump[:-10], dump[-10:-8] + 8 * b"\xff"  # a checksum that can't pass for the end of a value
    for size in range(len(body) - 2):  # the last two would be read from the footer, which stands behind
        assert shared[0].error("RESTORE", "copy", "0", body[:size] + footer) == "ERR Bad data format"
    client.restore("copy", 0, dump, replace=True)
    assert client.dump("copy") == dump


def test_c10_no_changed_byte_of_a_dump_crashes_the_server(shared: Pair, dump: bytes) -> None:
    client = shared[0].client()
    pipe = client.pipeline(transaction=False)
    for at in range(10, len(dump) - 10):  # behind the type's own id
        for value in (0, 1, 0x40, 0x80, 0x81, 0xC3, 0xFF):
            pipe.restore("copy", 0, dump[:at] + bytes([value]) + dump[at + 1 :], replace=True)
            pipe.execute_command("AI.TENSORGET", "copy", "META")
    pipe.execute(raise_on_error=False)
    assert client.ping()


def test_sessions_of_another_master_replace_those_of_before(make: Make) -> None:
    first, second = make(), make()
    first.hook(session="old")
    second.hook(session="new")
    first.client().replicaof("127.0.0.1", second.port)
    until(lambda: first.client().info("replication")["master_link_status"] == "up")
    assert [(f[2], f[6]) for f in first.seen("SESSION")] == [("old", ""), ("new", "new-1")]
    assert first.info()["sessions"] == 1


def test_clients_that_wait_when_their_node_becomes_a_replica_are_sent_away(pair: Pair) -> None:
    master, replica = pair
    master.hook(mode="hold")
    in_sync(master, replica)
    thread, results = later(master.error, "GET", "answer:1")
    master.waiting(1)
    replica.client().replicaof("NO", "ONE")
    master.client().replicaof("127.0.0.1", replica.port)
    thread.join(10)
    assert results[0].startswith("UNBLOCKED")
    master.waiting(0)
    assert master.info()["pending_misses"] == 0


def test_after_a_shutdown_that_failed_the_worker_is_still_looked_after(make: Make) -> None:
    server = make("save 900 1")
    server.client().set("x", "1")
    (server.folder / "dump.rdb").mkdir()  # the save can't replace a folder
    assert server.error("SHUTDOWN", "SAVE").startswith("ERR")
    server.kill_worker()
    until(lambda: server.info()["worker_restarts"] == 1)
    until(lambda: server.order("echo", "x") == [b"x"])
    (server.folder / "dump.rdb").rmdir()


def test_a_worker_that_loads_a_stored_script_anew_does_not_change_it(pair: Pair) -> None:
    """Found by torture: other entry points in its answer were those of the master alone."""
    master, replica = pair
    client = master.client()
    client.execute_command("AI.SCRIPTSTORE", "s", "CPU", "ENTRY_POINTS", 1, "f", "SOURCE", "x")
    client.execute_command("AI.MODELSTORE", "m", "ONNX", "CPU", "BLOB", "x")
    before = client.execute_command("AI.SCRIPTGET", "s"), client.execute_command("AI.MODELGET", "m", "META")
    (master.folder / "other-names").touch()
    master.kill_worker()
    master.restarted(1)
    until(lambda: len(master.seen("MODELLOAD")) == 2)
    assert (client.execute_command("AI.SCRIPTGET", "s"), client.execute_command("AI.MODELGET", "m", "META")) == before
    in_sync(master, replica)
    assert master.client().execute_command("DEBUG", "DIGEST") == replica.client().execute_command("DEBUG", "DIGEST")
