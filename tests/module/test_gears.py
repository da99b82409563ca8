"""Registrations, key events, and what the RG.* commands demand."""

import json
import os
import signal
import time

from .servers import Make, Server, free_port, in_sync, until  # noqa: TID251 (this package is tests/module)

Pair = tuple[Server, Server]
EVENTS = ["s-1", "KeysReader", "doc:*", "", [], [], []]
EVENTS_BODY = ["KeysReader", "async", "", "doc:*", "", "0", "0", "0"]  # as the module keeps it
TRIGGER_BODY = ["CommandReader", "async", "", "", "go", "0", "0", "0"]


def events(server: Server) -> list[list[str]]:
    return [f[2:] for f in server.seen("EVENT")]


def test_a_registration_hears_of_its_keys_with_event_and_type(server: Server) -> None:
    server.register("s", EVENTS)
    client = server.client()
    client.hset("doc:1", "a", "b")
    client.set("other", "x")
    client.set("doc:2", "x")
    client.delete("doc:1")
    client.rename("doc:2", "doc:3")
    client.get("doc:none")
    assert events(server) == [
        ["s-1", "hset", "doc:1", "hash"],
        ["s-1", "set", "doc:2", "string"],
        ["s-1", "del", "doc:1", "none"],
        ["s-1", "rename_from", "doc:2", "none"],
        ["s-1", "rename_to", "doc:3", "string"],
    ]


def test_event_and_type_filters_hold(server: Server) -> None:
    server.register(
        "s",
        ["s-1", "KeysReader", "*", "", ["hset", "DEL"], [], []],
        ["s-2", "KeysReader", "*", "", [], ["hash"], []],
        ["s-3", "KeysReader", "*", "", ["keymiss"], [], []],
    )
    client = server.client()
    client.set("a", "x")
    client.hset("h", "f", "v")
    client.delete("a")
    client.get("nothing")
    assert sorted(events(server)) == [
        ["s-1", "del", "a", "none"],
        ["s-1", "hset", "h", "hash"],
        ["s-2", "hset", "h", "hash"],
        ["s-3", "keymiss", "nothing", "none"],
    ]


def test_a_watch_hears_of_its_prefix_on_master_and_replica(pair: Pair) -> None:
    master, replica = pair
    for server in pair:
        server.order("watch", "passage:")
        server.order("watch", "passage:")
    master.client().hset("passage:1", "text", "x")
    master.client().set("other", "x")
    in_sync(master, replica)
    for server in pair:
        assert events(server) == [["watch", "hset", "passage:1", "hash"]]


def test_registrations_act_on_masters_alone(pair: Pair) -> None:
    master, replica = pair
    master.register("s", EVENTS)
    master.client().hset("doc:1", "a", "b")
    in_sync(master, replica)
    assert len(events(master)) == 1
    assert not events(replica)
    assert replica.info()["registrations"] == 1


def test_a_session_travels_to_the_replica_and_its_worker(pair: Pair) -> None:
    master, replica = pair
    master.register("s", EVENTS, ["s-2", "CommandReader", "", "go", [], [], []])
    in_sync(master, replica)
    (session,) = replica.seen("SESSION")
    assert session[2:8] == ["s", "default", "the code of s", "2", "s-1", "s-2"]
    assert session[8:] == [*EVENTS_BODY, *TRIGGER_BODY]
    master.order("unregister", "s-1")
    in_sync(master, replica)
    assert [f[2] for f in replica.seen("FORGET")] == ["s-1"]
    master.order("unregister", "s-2")
    in_sync(master, replica)
    assert replica.info()["sessions"] == 0
    assert master.info()["sessions"] == 0


def test_a_replica_that_becomes_master_fires_registrations(pair: Pair) -> None:
    master, replica = pair
    master.register("s", EVENTS)
    in_sync(master, replica)
    replica.client().replicaof("NO", "ONE")
    replica.client().hset("doc:1", "a", "b")
    assert events(replica) == [["s-1", "hset", "doc:1", "hash"]]
    assert [f[2] for f in replica.seen("ROLE")] == ["master"]


def test_a_registration_that_redis_did_not_keep_is_taken_back_from_the_worker(server: Server) -> None:
    server.block()
    server.send("RG.PYEXECUTE", "register", "s", json.dumps([EVENTS]))
    until(lambda: server.info()["scripts"] == 1)
    server.client().config_set("min-replicas-to-write", 1)
    server.unblock()
    until(lambda: "RG._REGISTER was refused: NOREPLICAS" in server.log)
    assert server.info()["sessions"] == 0
    assert [f[2:] for f in server.seen("SESSION")] == [["s", "default", "the code of s", "1", ""]]


def test_an_unregistration_that_redis_did_not_keep_brings_the_session_back(server: Server) -> None:
    server.register("s", EVENTS)
    server.client().config_set("min-replicas-to-write", 1)
    server.order("unregister", "s-1")
    until(lambda: "RG._UNREGISTER was refused: NOREPLICAS" in server.log)
    assert server.info()["registrations"] == 1
    assert [f[2:7] for f in server.seen("SESSION")] == [["s", "default", "the code of s", "1", "s-1"]]


def test_a_session_of_the_same_id_replaces_the_old_one(server: Server) -> None:
    server.register("s", EVENTS, ["s-2", "CommandReader", "", "go", [], [], []])
    server.register("s", ["s-9", "CommandReader", "", "go", [], [], []])
    assert server.info()["registrations"] == 1
    assert server.info()["sessions"] == 1


def test_sessions_come_before_start_and_start_before_requests(server: Server) -> None:
    server.register("s", EVENTS)
    server.client().execute_command("AI.MODELSTORE", "m", "ONNX", "CPU", "BLOB", "x")
    server.restart()
    names = [f[0] for f in server.seen()]
    assert names == ["HELLO", "SESSION", "MODELLOAD", "START"]


def test_a_replaced_keyspace_is_announced(server: Server) -> None:
    client = server.client()
    client.flushdb()
    client.flushall(asynchronous=True)
    client.swapdb(0, 1)
    client.execute_command("SWAPDB", "2", "3")
    server.client(db=5).flushdb()
    assert [f[2] for f in server.seen("RESYNC")] == ["flush", "flush", "swapdb"]


def test_lost_events_are_made_good_by_a_resync(make: Make) -> None:
    server = make(arguments="HEARTBEAT 0")
    server.order("watch", "doc:")
    os.kill(server.worker_pid(), signal.SIGSTOP)
    pipe = server.client().pipeline(transaction=False)
    key = "doc:" + "x" * 1_000_000
    for _ in range(80):
        pipe.set(key, "1")
    pipe.execute()
    until(lambda: server.info()["events_lost"] > 0)
    os.kill(server.worker_pid(), signal.SIGCONT)
    until(lambda: [f[2] for f in server.seen("RESYNC")] == ["overflow"])


def test_events_past_what_is_kept_are_for_the_worker_to_count(server: Server) -> None:
    server.register("s", EVENTS)
    pipe = server.client().pipeline(transaction=False)
    for _ in range(280):
        pipe.set("doc:" + "x" * 1_000_000, "1")
    pipe.execute()
    lost = server.info()["events_lost"]
    assert 10 < lost < 40
    until(lambda: server.info()["queue_bytes"] == 0)
    server.client().set("doc:1" + "x" * 1_000_000, "1")
    until(lambda: [e[3] for e in events(server)][-1] == "full")


def test_events_leave_room_for_requests_to_a_worker_that_is_slow(make: Make) -> None:
    server = make(arguments="TIMEOUT 0 HEARTBEAT 0")
    server.register("s", EVENTS)
    os.kill(server.worker_pid(), signal.SIGSTOP)
    pipe = server.client().pipeline(transaction=False)
    for _ in range(80):
        pipe.set("doc:" + "x" * 1_000_000, "1")
    pipe.execute()
    assert server.info()["queue_bytes"] > 0
    asking = server.client().connection_pool.get_connection()
    asking.send_command("RG.TRIGGER", "echo", "x")
    server.waiting(1)
    os.kill(server.worker_pid(), signal.SIGCONT)
    assert asking.read_response() == [b"x"]


def test_events_that_no_worker_has_done_go_to_the_next_one(server: Server) -> None:
    server.register("s", EVENTS)
    server.client().set("doc:1", "x")
    os.kill(server.worker_pid(), signal.SIGKILL)
    server.client().set("doc:2", "x")
    both = [["s-1", "set", "doc:1", "string"], ["s-1", "set", "doc:2", "string"]]
    until(lambda: server.info()["worker_restarts"] == 1 and events(server) == both)


def test_events_caused_by_a_call_come_before_its_reply(server: Server) -> None:
    server.order("watch", "doc:")
    server.call(["HSET", "doc:1", "a", "b"], ["DEL", "doc:1"])
    assert [e[1] for e in events(server)] == ["hset", "del"]


def test_a_session_hears_nothing_of_what_it_writes_quietly_and_others_do(server: Server) -> None:
    server.register("s", ["s-1", "KeysReader", "doc:*", "", [], [], []])
    server.register("t", ["t-1", "KeysReader", "doc:*", "", [], [], []])
    server.order("watch", "doc:", "s")
    server.call(["HSET", "doc:1", "a", "b"], ["DEL", "doc:1"], context="qs")
    server.call(["HSET", "doc:2", "a", "b"], context="ss")
    heard = [["t-1", "hset", "doc:1"], ["s-1", "del", "doc:1"], ["t-1", "del", "doc:1"]]
    heard += [["s-1", "hset", "doc:2"], ["t-1", "hset", "doc:2"], ["watch", "del", "doc:1"], ["watch", "hset", "doc:2"]]
    assert sorted(e[:3] for e in events(server)) == sorted(heard)


def test_what_a_nested_function_writes_starts_readers_of_streams_alone(server: Server) -> None:
    server.register("s", ["s-1", "KeysReader", "doc:*", "", [], [], []])
    server.register("t", ["t-1", "StreamReader", "doc:*", "", [], [], []])
    server.order("watch", "doc:")
    server.call(["HSET", "doc:1", "a", "b"], context="ns")
    server.call(["DEL", "doc:1"], context="ss")
    server.call(["SET", "doc:2", "a", "PX", "1"], context="ns")
    time.sleep(0.01)
    server.call(["GET", "doc:2"], context="ns")
    heard = [[e[1] for e in events(server) if e[0] == who] for who in ("s-1", "t-1", "watch")]
    assert heard == [["del", "expired"], *[["hset", "del", "set", "expire", "expired"]] * 2]


def test_the_internal_commands_are_closed_to_scripts_of_clients(shared: Pair) -> None:
    assert "internal" in shared[0].error("EVAL", "return redis.call('RG._UNREGISTER', 'x')", "0")


def test_pyexecute_can_be_forbidden(make: Make) -> None:
    assert "PYEXECUTE no" in make(arguments="PYEXECUTE no").error("RG.PYEXECUTE", "1")


def test_other_commands_travel_with_the_user_who_sent_them(shared: Pair) -> None:
    client = shared[0].client()
    assert client.execute_command("RG.DUMPREGISTRATIONS") == [b"default", b"RG.DUMPREGISTRATIONS"]
    assert client.execute_command("RG.TRIGGERONKEY", "echo", "k", "v") == [b"k", b"v"]


def test_in_a_cluster_a_call_for_a_slot_of_another_shard_says_try_again(make: Make) -> None:
    server = make("cluster-enabled yes", f"cluster-port {free_port()}")
    client = server.client()
    client.execute_command("CLUSTER", "ADDSLOTSRANGE", 0, 8000)
    client.config_set("cluster-require-full-coverage", "no")
    until(lambda: client.execute_command("CLUSTER", "INFO") and client.set("{06S}x", "1"))
    (hello,) = server.seen("HELLO")
    assert hello[3].encode() == client.execute_command("CLUSTER", "MYID")
    assert hello[5] == "1"
    assert server.call(["SET", "{06S}a", "1"]) == b"+OK\r\n"  # slot 0
    assert server.call(["GET", "foo"]).startswith(b"-TRYAGAIN")  # slot 12182
    assert server.error("RG.TRIGGERONKEY", "echo", "foo").startswith(("MOVED", "CLUSTERDOWN"))
