"""Commands of functions have the rights of a user whom the module knows, whatever a worker says."""

import json

import pytest

from .servers import Make, Server, in_sync, until  # noqa: TID251 (this package is tests/module)

Pair = tuple[Server, Server]


def user(server: Server, name: str, *rights: str) -> None:
    server.client().execute_command("ACL", "SETUSER", name, "reset", "on", "nopass", *rights)


def script(server: Server, *words: str, login: str = "default") -> object:
    client = server.client(username=login, password="x") if login != "default" else server.client()
    return client.execute_command("RG.PYEXECUTE", *words)


def test_a_function_has_the_rights_of_its_caller(server: Server) -> None:
    user(server, "asker", "~ask:*", "+get", "+rg.trigger")
    replies = server.call(["GET", "ask:1"], ["GET", "doc:1"], ["DEL", "ask:1"], user="asker").split(b"\r\n")
    assert replies[0] == b"$-1"
    assert b"NOPERM" in replies[1]
    assert b"NOPERM" in replies[2]


def test_a_function_has_the_rights_its_caller_has_now(server: Server) -> None:
    user(server, "asker", "~ask:*", "+get", "+rg.trigger")
    assert server.call(["GET", "ask:1"], user="asker") == b"$-1\r\n"
    server.client().execute_command("ACL", "SETUSER", "asker", "-get")
    assert server.call(["GET", "ask:1"], user="asker").startswith(b"-NOPERM")


@pytest.mark.parametrize(
    "words", [["SET", "a", "1"], ["GET", "a"], ["CONFIG", "GET", "requirepass"], ["FLUSHALL"], ["PING"], ["SCAN", "0"]]
)
def test_the_worker_itself_may_touch_nothing(shared: Pair, words: list[str]) -> None:
    assert bytes(shared[0].order("call_by_itself", json.dumps([words]))).startswith(b"-NOPERM")


def test_the_worker_itself_may_look_at_the_cluster(make: Make) -> None:
    server = make("cluster-enabled yes")
    assert b"myself,master" in bytes(server.order("call_by_itself", json.dumps([["CLUSTER", "NODES"]])))


@pytest.mark.parametrize("context", ["default", "r", "r999999", "r0", "r-1", "rx", "s", "snone", "x", "r1 ", "R1"])
def test_a_context_that_the_module_did_not_give_has_no_rights(shared: Pair, context: str) -> None:
    assert shared[0].call(["GET", "a"], context=context).startswith(b"-NOPERM")


def test_rights_end_with_the_reply(server: Server) -> None:
    server.order("call_after_reply", json.dumps([["SET", "a", "1"]]))
    assert b"NOPERM" in bytes(server.order("late_reply"))
    assert server.client().get("a") is None


def test_a_script_keeps_its_rights_until_it_is_released(server: Server) -> None:
    script(server, "call", json.dumps([["INCR", "a"]]))
    assert bytes(server.order("late_reply")).startswith(b":1\r\n-NOPERM")


def test_a_script_keeps_its_rights_when_its_client_has_left(server: Server) -> None:
    server.block()
    waiting = server.client().connection_pool.get_connection()
    waiting.send_command("RG.TRIGGER", "late")  # the worker stands still
    until(lambda: server.info()["pending_requests"] == 1)
    connection = server.send("RG.PYEXECUTE", "call", json.dumps([["INCR", "a"]]))
    until(lambda: server.info()["pending_requests"] == 2)
    connection.disconnect()
    until(lambda: server.info()["cancelled"] == 1)
    server.unblock()
    until(lambda: server.client().get("a") == b"1")
    waiting.disconnect()


def test_the_rights_of_scripts_that_a_dead_worker_ran_are_gone(server: Server) -> None:
    server.block()
    waiting = server.send("RG.TRIGGER", "late")
    until(lambda: server.info()["pending_requests"] == 1)
    connection = server.send("RG.PYEXECUTE", "call", "[]")
    until(lambda: server.info()["scripts"] == 1)
    server.kill_worker()
    until(lambda: server.info()["scripts"] == 0)
    waiting.disconnect()
    connection.disconnect()


def test_more_scripts_than_may_wait_are_refused(make: Make) -> None:
    server = make(arguments="MAXPENDING 2")
    server.block()
    waiting = server.send("RG.TRIGGER", "late")
    until(lambda: server.info()["pending_requests"] == 1)
    for scripts in (1, 2):
        connection = server.send("RG.PYEXECUTE", "call", "[]")
        until(lambda wanted=scripts: server.info()["scripts"] == wanted)  # type: ignore[misc]
        connection.disconnect()
        server.waiting(1)
    assert server.error("RG.PYEXECUTE", "1").startswith("BUSY")
    server.unblock()
    until(lambda: server.info()["scripts"] == 0)
    waiting.disconnect()


def test_a_session_belongs_to_whose_script_it_is_and_not_to_whom_the_worker_names(pair: Pair) -> None:
    master, replica = pair
    user(master, "registrar", "~ok:*", "+@all")
    assert script(master, "register", "s", "[]", "default", login="registrar") == b"OK"
    assert master.call(["SET", "other", "1"], context="ss").startswith(b"-NOPERM")
    assert master.call(["SET", "ok:1", "1"], context="ss") == b"+OK\r\n"
    in_sync(master, replica)
    assert [f[2:4] for f in replica.seen("SESSION")] == [["s", "registrar"]]


def test_a_session_that_belongs_to_no_script_is_not_kept(server: Server) -> None:
    script(server, "register", "s", "[]", "default", "no")
    assert server.info()["sessions"] == 0


def test_a_session_that_registers_otherwise_when_replayed_keeps_its_user(server: Server) -> None:
    user(server, "registrar", "~ok:*", "+@all")
    script(server, "register", "s", "[]", "registrar", login="registrar")
    script(server, "register", "s", "[]", "default", "no")
    assert server.call(["SET", "other", "1"], context="ss").startswith(b"-NOPERM")


def test_a_session_can_not_be_given_other_code_outside_of_a_script(server: Server) -> None:
    script(server, "register", "s", "[]")
    script(server, "register", "s", "[]", "default", "other code")
    server.restart()
    assert [f[4] for f in server.seen("SESSION")] == ["the code of s"]


def test_a_session_whose_user_is_gone_has_no_rights(server: Server) -> None:
    user(server, "registrar", "~*", "+@all")
    script(server, "register", "s", "[]", login="registrar")
    server.client().execute_command("ACL", "DELUSER", "registrar")
    assert "no longer exists" in server.call(["GET", "a"], context="ss").decode()


def test_a_check_says_what_may_be_run_and_runs_nothing(server: Server) -> None:
    user(server, "asker", "~ask:*", "&news", "+get", "+set", "+publish", "+rg.trigger")
    commands = [["SET", "ask:1", "1"], ["SET", "doc:1", "1"], ["DEL", "ask:1"], ["nosuch"], ["PUBLISH", "other", "x"]]
    replies = server.call(*commands, user="asker", check=True).split(b"\r\n")[:-1]
    assert [reply[:7] for reply in replies] == [b"+OK", b"-NOPERM", b"-NOPERM", b"-ERR un", b"-NOPERM"]
    assert b"'asker' may not run 'SET doc:1'" in replies[1]
    assert server.client().get("ask:1") is None


def test_a_denial_shows_no_bytes_that_would_break_the_reply(server: Server) -> None:
    user(server, "asker", "~ask:*", "+rg.trigger")
    reply = server.call(["GET", "a\r\n+OK\r\n"], user="asker", check=True)
    assert reply.count(b"\r\n") == 1


def test_misses_of_users_with_other_rights_do_not_share_a_computation(server: Server) -> None:
    user(server, "asker", "~answer:*", "+get", "+shardqa.get")
    server.hook(mode="hold")
    clients = [server.client(), server.client(), server.client(username="asker", password="x")]
    connections = [client.connection_pool.get_connection() for client in clients]
    for connection in connections:
        connection.send_command("GET", "answer:1")
    server.waiting(3)
    assert server.info()["hook_shared_misses"] == 1
    server.order("release")
    assert [connection.read_response() for connection in connections] == [b"value of answer:1"] * 3


def test_a_node_whose_cluster_is_down_lets_no_question_be_asked(make: Make) -> None:
    server = make(cluster=True)
    client = server.client()
    client.execute_command("CLUSTER", "ADDSLOTSRANGE", 0, 16383)
    until(lambda: server.call(["GET", "answer:1"], check=True) == b"+OK\r\n")
    client.config_set("cluster-require-full-coverage", "yes")
    client.execute_command("CLUSTER", "DELSLOTSRANGE", 0, 10)
    until(lambda: server.call(["GET", "answer:1"], check=True).startswith(b"-CLUSTERDOWN"))
    assert server.call(["SET", "answer:1", "x"], check=True) == b"+OK\r\n"  # Redis refuses it when it is sent
    client.config_set("cluster-require-full-coverage", "no")
    until(lambda: server.call(["GET", "answer:1"], check=True) == b"+OK\r\n")
