"""Scripts as keys, and graphs on their way to the worker."""

import pytest
from redis.exceptions import NoPermissionError

from .servers import Server  # noqa: TID251 (this package is tests/module)

Pair = tuple[Server, Server]
SET = "|> AI.TENSORSET t FLOAT 1"
RUN = "|> AI.MODELEXECUTE m INPUTS 1 t OUTPUTS 1 o"


@pytest.fixture(scope="module")
def node(shared: Pair) -> Server:
    client = shared[0].client()
    client.execute_command("AI.TENSORSET", "a", "FLOAT", 1)
    client.execute_command("AI.MODELSTORE", "m", "ONNX", "CPU", "BLOB", "x")
    client.execute_command("AI.SCRIPTSTORE", "s", "CPU", "ENTRY_POINTS", 1, "f", "SOURCE", "x")
    client.set("text", "x")
    return shared[0]


def test_who_may_not_run_debug_stores_no_script(node: Server) -> None:
    node.client().execute_command("ACL", "SETUSER", "plain", "on", ">p", "~*", "+@all", "-debug")
    for words in ("AI.SCRIPTSTORE s2 CPU ENTRY_POINTS 1 f SOURCE x", "AI.SCRIPTSET s2 CPU SOURCE x"):
        error = node.error(*words.split(), login=("plain", "p"))
        assert error.startswith(f"NOPERM {words.split()[0]} runs code on the server")


def test_scripts_live_as_keys_do(node: Server) -> None:
    client = node.client()
    words = ["AI.SCRIPTSTORE", "k", "cpu", "TAG", b"a\0b", "ENTRY_POINTS", 2, "f", "g", "SOURCE", "def …"]
    assert client.execute_command(*words) == b"OK"
    assert client.type("k") == b"AI_SCRIPT"
    client.copy("k", "copied")
    client.restore("restored", 0, client.dump("k"))
    source = "def …".encode()
    meta = [b"device", b"cpu", b"tag", b"a\0b", b"Entry Points", [b"x"]]  # as the fake worker names them
    for key in ("k", "copied", "restored"):
        assert client.execute_command("AI.SCRIPTGET", key) == [*meta, b"source", source]
        assert client.execute_command("AI.SCRIPTGET", key, "META") == meta
        assert client.execute_command("AI.SCRIPTGET", key, "SOURCE") == source
    assert len(set(client.execute_command("DEBUG", "DIGEST-VALUE", "k", "copied", "restored"))) == 1
    scanned = sorted(found[0] for found in client.execute_command("AI._SCRIPTSCAN"))
    assert scanned == [b"copied", b"k", b"restored", b"s"]
    assert client.execute_command("AI.INFO", "k")[2:4] == [b"type", b"SCRIPT"]
    for key in ("k", "copied", "restored"):
        assert client.execute_command("AI.SCRIPTDEL", key) == b"OK"


def test_a_dag_goes_to_the_worker_in_one_frame(node: Server) -> None:
    words = f"LOAD 1 a PERSIST 1 o TIMEOUT 20 {SET} {RUN}"
    assert node.client().execute_command("AI.DAGEXECUTE", *words.split()) == b"TIMEDOUT"
    frame = node.seen("DAG")[-1]
    assert frame[2:7] == ["20", "1", "a", "FLOAT 1", "\0\0\0\0"]
    assert frame[7:12] == ["2", "set", "t", "FLOAT 1", "\0\0\0\0"]
    assert frame[12] == "model"
    assert frame[14:] == ["1", "t", "1", "o", "1", "o"]


def test_a_user_needs_the_right_to_a_model_that_no_option_names(node: Server) -> None:
    node.client().execute_command("ACL", "SETUSER", "dagger", "reset", "on", "nopass", "~other*", "+ai.dagexecute_ro")
    with pytest.raises(NoPermissionError):
        node.client(username="dagger", password="x").execute_command(
            *f"AI.DAGEXECUTE_RO ROUTING other {SET} {RUN}".split()
        )


def test_a_script_may_be_stored_in_a_transaction_and_not_from_lua(node: Server) -> None:
    words = ("AI.SCRIPTSTORE", "lua", "CPU", "ENTRY_POINTS", 1, "f", "SOURCE", "x")
    quoted = ", ".join(f"'{word}'" for word in words)
    assert "within a transaction or a LUA script" in node.error("EVAL", f"return redis.call({quoted})", 0)
    assert node.client().exists("lua") == 0
    pipe = node.client().pipeline(transaction=True)
    pipe.execute_command(*words)
    assert pipe.execute() == [b"OK"]
    node.client().delete("lua")
