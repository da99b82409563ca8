"""The AI.MODEL* commands, AI.INFO and AI._MODELSCAN with a worker that only pretends to run models."""

import struct
import threading
from collections.abc import Callable
from typing import Any

import pytest

from .servers import Make, Server, command, in_sync, until  # noqa: TID251 (this package is tests/module)

Pair = tuple[Server, Server]


def store(server: Server, key: str = "m", blob: Any = b"bytes", *options: Any) -> None:
    assert server.client().execute_command("AI.MODELSTORE", key, "ONNX", "CPU", *options, "BLOB", blob) == b"OK"


def tensor(server: Server, key: str = "t", *values: float) -> None:
    values = values or (1.0, 2.0)
    server.client().execute_command("AI.TENSORSET", key, "FLOAT", len(values), "VALUES", *values)


def execute(server: Server, key: str = "m", *more: Any) -> Any:
    return server.client().execute_command("AI.MODELEXECUTE", key, "INPUTS", "1", "t", "OUTPUTS", "1", "o", *more)


def test_padded_inputs_are_kept_shown_and_replicated(shared: Pair) -> None:
    master, replica = shared
    store(master, "padded", b"by", "BATCHSIZE", 8, "PADDED", 2, "a", "b")
    in_sync(master, replica)
    for server in shared:
        meta = server.client().execute_command("AI.MODELGET", "padded", "META")
        assert meta[-2:] == [b"padded", [b"a", b"b"]]
    master.client().execute_command("COPY", "padded", "padded:copied")
    dump = master.client().dump("padded")
    master.client().restore("padded:restored", 0, dump)
    for key in ("padded:copied", "padded:restored"):
        assert master.client().execute_command("AI.MODELGET", key, "META")[-1] == [b"a", b"b"]


def test_a_stored_model_comes_back_whole(shared: Pair) -> None:
    store(shared[0], "m", b"by\0tes", "TAG", "v:1", "BATCHSIZE", 8, "MINBATCHSIZE", 2, "MINBATCHTIMEOUT", 5)
    meta = [b"backend", b"ONNX", b"device", b"CPU", b"tag", b"v:1", b"batchsize", 8, b"minbatchsize", 2]
    meta += [b"inputs", [b"x"], b"outputs", [b"y"], b"minbatchtimeout", 5]
    client = shared[0].client()
    assert client.execute_command("AI.MODELGET", "m", "META") == meta
    assert client.execute_command("AI.MODELGET", "m") == [*meta, b"blob", b"by\0tes"]
    assert client.execute_command("AI.MODELGET", "m", "META", "BLOB") == [*meta, b"blob", b"by\0tes"]
    assert client.execute_command("AI.MODELGET", "m", "BLOB") == b"by\0tes"


def test_the_worker_gets_the_file_and_its_settings(shared: Pair) -> None:
    store(shared[0], "seen", b"a file", "TAG", "v7", "BATCHSIZE", 4)
    load = next(f for f in shared[0].seen("MODELLOAD") if f[9] == "seen")
    none = "\0\0\0\0"
    assert load[3:] == ["ONNX", "CPU", "v7", "4", "0", "0", "seen", none, none, none, "", "a file"]


def test_what_the_worker_refuses_is_not_stored(shared: Pair) -> None:
    assert shared[0].error("AI.MODELSTORE", "bad", "ONNX", "CPU", "BLOB", "BAD file") == "ERR this is no model"
    assert shared[0].client().exists("bad") == 0
    dropped = [f[2] for f in shared[0].seen("MODELDROP")]
    assert next(f for f in shared[0].seen("MODELLOAD") if f[9] == "bad")[2] in dropped


def test_running_a_model_writes_its_outputs_and_replicates_them_as_tensors(pair: Pair) -> None:
    master, replica = pair
    store(master)
    tensor(master)
    assert execute(master) == b"OK"
    assert master.client().execute_command("AI.TENSORGET", "o", "META", "VALUES")[-1] == [b"1", b"2"]
    in_sync(master, replica)
    assert replica.client().execute_command("AI.TENSORGET", "o", "VALUES") == [b"1", b"2"]
    assert b"AI.MODELEXECUTE" not in master.aof()
    assert master.aof().count(b"AI.TENSORSET") == 2
    (frame,) = master.seen("EXECUTE")
    assert frame[2].split(" ", 1)[1] == "0 1 FLOAT 2"
    assert len(frame) == 4


def test_statistics_count_what_ran(server: Server) -> None:
    store(server, "m", b"x", "TAG", "v1")
    tensor(server)
    execute(server)
    execute(server)
    info = ("AI.INFO", "m")
    head = [b"key", b"m", b"type", b"MODEL", b"backend", b"ONNX", b"device", b"CPU", b"tag", b"v1"]
    numbers = [b"duration", 2468, b"samples", 4, b"calls", 2, b"errors", 0]
    assert server.client().execute_command(*info) == [*head, *numbers]
    assert server.client().execute_command(*info, "RESETSTAT") == b"OK"
    assert server.client().execute_command(*info)[-8:] == [word if isinstance(word, bytes) else 0 for word in numbers]


@pytest.mark.parametrize(
    ("tag", "error"),
    [
        ("fail", "ERR the model failed"),
        ("extra", "number of OUTPUTS"),
        ("wrong", "contradict their types and shapes"),
        ("surplus", "contradict their types and shapes"),
    ],
)
def test_a_run_that_goes_wrong_is_counted_as_the_error_of_its_command(server: Server, tag: str, error: str) -> None:
    store(server, "m", b"x", "TAG", tag)
    tensor(server)
    assert error in server.error("AI.MODELEXECUTE", "m", "INPUTS", 1, "t", "OUTPUTS", 1, "o")
    assert server.client().execute_command("AI.INFO", "m")[-1] == 1
    assert server.client().exists("o") == 0
    info = server.info()
    assert (info["worker_restarts"], info["unreadable_replies"]) == (0, tag in ("wrong", "surplus"))


def test_an_output_that_cannot_be_written_is_the_error_of_the_command(shared: Pair) -> None:
    store(shared[0])
    tensor(shared[0])
    shared[0].client().set("taken", "x")
    assert shared[0].error("AI.MODELEXECUTE", "m", "INPUTS", 1, "t", "OUTPUTS", 1, "taken").startswith("WRONGTYPE")


def test_a_model_that_kills_the_worker_is_loaded_again_and_others_still_run(server: Server) -> None:
    store(server, "m", b"x")
    store(server, "deadly", b"x", "TAG", "die")
    tensor(server)
    assert server.error("AI.MODELEXECUTE", "deadly", "INPUTS", 1, "t", "OUTPUTS", 1, "o").startswith("TRYAGAIN")
    until(lambda: server.info()["worker_state"] == "ready")
    assert sorted(f[9] for f in server.seen("MODELLOAD")) == ["deadly", "m"]
    assert execute(server) == b"OK"


def test_storing_again_replaces_the_model_and_drops_the_old_one(server: Server) -> None:
    store(server, "m", b"one")
    store(server, "m", b"two")
    assert server.client().execute_command("AI.MODELGET", "m", "BLOB") == b"two"
    until(lambda: server.info()["models"] == 1)
    first = server.seen("MODELLOAD")[0][2]
    until(lambda: [f[2] for f in server.seen("MODELDROP")] == [first])


def test_a_restart_loads_no_model_that_was_deleted_or_replaced_meanwhile(server: Server) -> None:
    store(server, "m", b"one")
    server.client().delete("m")
    store(server, "m", b"two")
    store(server, "m", b"three")
    server.restart()
    assert [f[-1] for f in server.seen("MODELLOAD")] == ["three"]
    assert server.info()["models"] == 1


def test_a_deleted_model_is_dropped_by_the_worker_whatever_deleted_it(server: Server) -> None:
    client = server.client()
    ways: list[Callable[[], Any]] = [
        lambda: client.execute_command("AI.MODELDEL", "m"),
        lambda: client.delete("m"),
        lambda: client.unlink("m"),
        lambda: client.flushall(asynchronous=True),
        lambda: client.set("m", "x"),
        lambda: client.pexpire("m", 1),
    ]
    for delete in ways:
        client.delete("m")
        store(server, "m")
        delete()
        until(lambda: server.info()["models"] == 0)
    assert len(server.seen("MODELDROP")) == 6


def test_models_are_listed_with_their_tags_under_their_keys_of_now(server: Server) -> None:
    store(server, "{m}1", b"x", "TAG", "a")
    store(server, "{m}2", b"x")
    client = server.client()
    client.rename("{m}2", "{m}3")
    client.copy("{m}1", "{m}4")
    assert sorted(client.execute_command("AI._MODELSCAN")) == [[b"{m}1", b"a"], [b"{m}3", b""], [b"{m}4", b"a"]]
    until(lambda: any(f[9] == "{m}4" for f in server.seen("MODELLOAD")))
    tensor(server)
    assert execute(server, "{m}4") == b"OK"
    assert execute(server, "{m}3") == b"OK"


def test_a_model_reaches_the_replica_and_its_worker(pair: Pair) -> None:
    master, replica = pair
    store(master, "m", b"z" * 5_000_000, "TAG", "v1", "BATCHSIZE", 3)
    in_sync(master, replica)
    assert replica.client().execute_command("AI.MODELGET", "m", "BLOB") == b"z" * 5_000_000
    until(lambda: [f[9] for f in replica.seen("MODELLOAD")] == ["m"])
    assert replica.client().execute_command("AI.MODELGET", "m", "META")[11] == [b"x"]
    digest = master.client().execute_command("DEBUG", "DIGEST")
    assert replica.client().execute_command("DEBUG", "DIGEST") == digest
    replica.client().replicaof("NO", "ONE")
    tensor(replica)
    assert execute(replica) == b"OK"


def test_a_model_whose_names_no_rdb_could_bring_back_is_refused(server: Server) -> None:
    assert "65536 bytes" in server.error("AI.MODELSTORE", "m", "ONNX", "CPU", "BLOB", "LONG names")
    assert server.client().exists("m") == 0
    server.restart()
    assert server.client().dbsize() == 0


def test_other_commands_are_served_while_a_model_loads(server: Server) -> None:
    replies: list[Any] = []
    server.block()
    words = ["AI.MODELSTORE", "slow", "ONNX", "CPU", "BLOB", "SLOW"]
    thread = threading.Thread(target=lambda: replies.append(server.client().execute_command(*words)))
    thread.start()
    server.waiting(1)
    assert server.client().set("x", 1)
    assert not replies
    assert server.client().exists("slow") == 0
    server.unblock()
    thread.join(10)
    assert server.client().exists("slow") == 1


def test_a_transaction_or_a_script_may_store_models_but_run_none(shared: Pair) -> None:
    store(shared[0])
    tensor(shared[0])
    client = shared[0].client()
    pipe = client.pipeline(transaction=True)
    pipe.execute_command("AI.MODELSTORE", "m2", "ONNX", "CPU", "BLOB", "x")
    pipe.execute_command("AI.MODELEXECUTE", "m", "INPUTS", 1, "t", "OUTPUTS", 1, "o")
    stored, error = pipe.execute(raise_on_error=False)
    assert stored == b"OK"
    assert str(error) == "Cannot run RedisAI command within a transaction or a LUA script"
    client.eval("return redis.call('AI.MODELSTORE', KEYS[1], 'ONNX', 'CPU', 'BLOB', 'x')", 1, "m3")
    for key in ("m2", "m3"):
        assert execute(shared[0], key) == b"OK"
        assert client.execute_command("AI.MODELGET", key, "META")[10:14] == [b"inputs", [b"x"], b"outputs", [b"y"]]
        client.delete(key)


def test_a_bad_model_stored_in_a_transaction_fails_when_it_is_run(shared: Pair) -> None:
    tensor(shared[0])
    pipe = shared[0].client().pipeline(transaction=True)
    pipe.execute_command("AI.MODELSTORE", "bad", "ONNX", "CPU", "BLOB", "BAD file")
    assert pipe.execute() == [b"OK"]
    until(lambda: "the worker refused the model in key 'bad'" in shared[0].log)
    assert shared[0].error("AI.MODELEXECUTE", "bad", "INPUTS", 1, "t", "OUTPUTS", 1, "o") == "ERR this is no model"
    shared[0].client().delete("bad")


def test_replicas_and_restarted_nodes_know_inputs_and_outputs_without_a_worker(make: Make) -> None:
    master = make()
    store(master)
    replica = Server(master.folder.parent / "workerless", f"replicaof 127.0.0.1 {master.port}", worker=False).start()
    try:
        until(lambda: replica.client().info("replication")["master_link_status"] == "up")
        store(master, "later")
        in_sync(master, replica)
        for key in ("m", "later"):
            meta = replica.client().execute_command("AI.MODELGET", key, "META")
            assert meta[10:14] == [b"inputs", [b"x"], b"outputs", [b"y"]]
    finally:
        replica.stop()
    master.stop()
    master.worker = False
    master.start()
    meta = master.client().execute_command("AI.MODELGET", "m", "META")
    assert meta[10:14] == [b"inputs", [b"x"], b"outputs", [b"y"]]


def test_a_tag_may_hold_any_bytes(shared: Pair) -> None:
    client = shared[0].client()
    store(shared[0], "tagged", b"x", "TAG", b"a\0b")
    assert client.execute_command("AI.MODELGET", "tagged", "META")[5] == b"a\0b"
    assert [b"tagged", b"a\0b"] in client.execute_command("AI._MODELSCAN")
    client.copy("tagged", "copied")
    client.restore("restored", 0, client.dump("tagged"))
    assert client.execute_command("AI.INFO", "copied")[9] == b"a\0b"
    assert client.execute_command("AI.MODELGET", "restored", "META")[5] == b"a\0b"
    client.delete("tagged", "copied", "restored")


def test_the_device_is_said_as_it_was_given(shared: Pair) -> None:
    client = shared[0].client()
    client.execute_command("AI.MODELSTORE", "low", "onnx", "cpu:1", "BLOB", "x")
    assert client.execute_command("AI.MODELGET", "low", "META")[:4] == [b"backend", b"ONNX", b"device", b"cpu:1"]
    client.delete("low")


def test_modelset_stores_as_modelstore_does(shared: Pair) -> None:
    client = shared[0].client()
    assert client.execute_command("AI.MODELSET", "old", "ONNX", "CPU", "TAG", "t", "BLOB", "x", "y") == b"OK"
    assert client.execute_command("AI.MODELGET", "old", "BLOB") == b"xy"
    words = ["AI.MODELSET", "tf", "TF", "CPU", "INPUTS", "a", "b", "OUTPUTS", "c", "BLOB", "TWO"]
    assert client.execute_command(*words) == b"OK"
    load = next(f for f in shared[0].seen("MODELLOAD") if f[9] == "tf")
    assert [load[10][4:], load[11][4:]] == ["\1\0\0\0a\1\0\0\0b", "\1\0\0\0c"]
    client.delete("old", "tf")


def test_modelset_takes_back_the_names_that_modelget_told(shared: Pair) -> None:
    """RedisAI's client for Java sends them for every backend."""
    client = shared[0].client()
    assert (
        client.execute_command("AI.MODELSET", "old", "ONNX", "CPU", "INPUTS", "a", "OUTPUTS", "b", "BLOB", "x") == b"OK"
    )
    load = next(f for f in reversed(shared[0].seen("MODELLOAD")) if f[9] == "old")
    assert load[10] == load[11] == "\0\0\0\0"  # none
    client.delete("old")


def test_a_run_that_times_out_is_an_error_in_the_statistics(server: Server) -> None:
    store(server, "m", b"x", "TAG", "hang")
    tensor(server)
    assert execute(server, "m", "TIMEOUT", 20) == b"TIMEDOUT"
    until(lambda: server.seen("CANCEL"))
    assert server.client().execute_command("AI.INFO", "m")[-4:] == [b"calls", 1, b"errors", 1]


def test_runs_that_functions_did_count_in_the_statistics(server: Server) -> None:
    store(server)
    model = server.seen("MODELLOAD")[0][2]
    server.order("ran", model, 3, 1000, 12, 1, 999, 5, 5, 5, 5)
    until(lambda: server.client().execute_command("AI.INFO", "m")[-3] == 3)
    numbers = [b"duration", 1000, b"samples", 12, b"calls", 3, b"errors", 1]
    assert server.client().execute_command("AI.INFO", "m")[10:] == numbers


def test_the_keys_of_an_execution_are_found_even_if_they_look_like_keywords(shared: Pair) -> None:
    client = shared[0].client()
    words = ["AI.MODELEXECUTE", "m", "INPUTS", "3", "OUTPUTS", "1", "a", "OUTPUTS", "1", "secret"]
    assert client.execute_command("COMMAND GETKEYS", *words) == ["m", "OUTPUTS", "1", "a", "secret"]
    client.execute_command("ACL", "SETUSER", "tricky", "on", ">p", "%R~m", "~OUTPUTS", "~1", "~a", "+ai.modelexecute")
    assert "NOPERM" in shared[0].error(*words, login=("tricky", "p"))


def test_without_a_worker_stored_models_are_kept_and_running_them_says_why_not(make: Make) -> None:
    server = make()
    store(server)
    tensor(server)
    server.stop()
    server.worker = False
    server.start()
    assert server.client().execute_command("AI.MODELGET", "m", "BLOB") == b"bytes"
    assert "PYTHON" in server.error("AI.MODELEXECUTE", "m", "INPUTS", 1, "t", "OUTPUTS", 1, "o")


def test_a_batch_of_executions_at_once_is_answered_each_with_its_own(server: Server) -> None:
    store(server)
    client = server.client()
    for i in range(20):
        client.execute_command("AI.TENSORSET", f"in{i}", "FLOAT", 1, "BLOB", struct.pack("<f", i))
    threads = [
        threading.Thread(
            target=server.client().execute_command,
            args=("AI.MODELEXECUTE", "m", "INPUTS", 1, f"in{i}", "OUTPUTS", 1, f"out{i}"),
        )
        for i in range(20)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert [float(client.execute_command("AI.TENSORGET", f"out{i}", "VALUES")[0]) for i in range(20)] == list(range(20))


DAMAGES = [
    (b"\x03CPU", b"\x03CP\xff"),
    (b"\x03CPU", b"\x03XPU"),
    (b"\x04ONNX", b"\x04ON\xffX"),
    (b"\x02\x43\xe7", b"\x02\x81\x40\x00\x00\x00\x00\x00\x00\x00"),  # MINBATCHTIMEOUT 999 becomes 2^62
    (b"\x02\x43\xe7", b"\x02\x81\xff\xff\xff\xff\xff\xff\xff\xff"),
]


def damaged(server: Server, find: bytes, put: bytes) -> bytes:
    """The dump of a model with some bytes of it replaced."""
    store(server, "whole", b"file", "BATCHSIZE", 8, "MINBATCHSIZE", 2, "MINBATCHTIMEOUT", 999)
    dump = bytes(server.client().dump("whole"))
    assert dump.count(find) == 1
    return dump.replace(find, put)


@pytest.mark.parametrize(("find", "put"), DAMAGES)
def test_a_restore_of_a_model_with_a_damaged_field_is_refused(shared: Pair, find: bytes, put: bytes) -> None:
    client = shared[0].client()
    dump = damaged(shared[0], find, put)
    client.execute_command("DEBUG", "SET-SKIP-CHECKSUM-VALIDATION", "1")
    assert shared[0].error("RESTORE", "copy", "0", dump) == "ERR Bad data format"
    client.execute_command("DEBUG", "SET-SKIP-CHECKSUM-VALIDATION", "0")
    assert shared[0].order("echo", "x") == [b"x"]


@pytest.mark.parametrize(("find", "put"), DAMAGES)
def test_a_damaged_model_in_the_append_only_file_is_kept_and_no_worker_is_given_it(
    server: Server, find: bytes, put: bytes
) -> None:
    dump = damaged(server, find, put)
    server.stop()
    (file,) = (server.folder / "appendonlydir").glob("*.incr.aof")
    with file.open("ab") as aof:
        aof.write(command("DEBUG", "SET-SKIP-CHECKSUM-VALIDATION", "1"))
        aof.write(command("RESTORE", "damaged", "0", dump) + command("COPY", "damaged", "copied"))
    server.start()
    tensor(server)
    for key in ("damaged", "copied"):
        assert "the model is damaged" in server.error("AI.MODELEXECUTE", key, "INPUTS", 1, "t", "OUTPUTS", 1, "o")
    assert [f[9] for f in server.seen("MODELLOAD")] == ["whole"]
    server.kill_worker()
    server.restarted(1)
    assert [f[9] for f in server.seen("MODELLOAD")] == ["whole"]
    assert execute(server, "whole") == b"OK"


def test_looking_at_models_is_no_use_of_them(server: Server) -> None:
    client = server.client()
    client.config_set("maxmemory-policy", "allkeys-lfu")
    client.config_set("lfu-log-factor", 0)  # each use counts
    store(server, "m", b"x")
    client.execute_command("AI.TENSORSET", "t", "FLOAT", 1)
    before = [client.object("freq", key) for key in ("m", "t")]
    for _ in range(5):
        client.execute_command("AI._MODELSCAN")
        client.execute_command("AI.INFO", "m")
    assert [client.object("freq", key) for key in ("m", "t")] == before
    client.execute_command("AI.MODELGET", "m", "META")
    client.execute_command("AI.TENSORGET", "t")
    assert [client.object("freq", key) for key in ("m", "t")] == [count + 1 for count in before]


READING = """
AI.MODELGET m META
AI.MODELGET m
AI.INFO m
AI._MODELSCAN
AI.TENSORGET t META BLOB
AI.SCRIPTGET s META
AI._SCRIPTSCAN
AI.CONFIG GET MODEL_CHUNK_SIZE
"""


@pytest.mark.parametrize("words", READING.strip().splitlines())
def test_replies_of_resp3_are_those_of_resp2(shared: Pair, words: str) -> None:
    """Arrays where RedisAI has arrays, so that its clients read them under either protocol."""
    client = shared[0].client()
    store(shared[0], "m", b"x", "TAG", "v1")
    client.execute_command("AI.TENSORSET", "t", "INT8", 2, "VALUES", 1, 2)
    client.execute_command("AI.SCRIPTSTORE", "s", "CPU", "ENTRY_POINTS", 1, "f", "SOURCE", "x")
    two, three = (shared[0].client(protocol=protocol).execute_command(*words.split()) for protocol in (2, 3))
    assert two == three
