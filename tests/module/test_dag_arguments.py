"""What is wrong in the arguments of DAG and script commands is said before anything runs, in RedisAI's words."""

import pytest
from redis.exceptions import NoPermissionError

from .servers import Server, until  # noqa: TID251 (this package is tests/module)

Pair = tuple[Server, Server]
GET = "|> AI.TENSORGET a"
SET = "|> AI.TENSORSET t FLOAT 1"
RUN = "|> AI.MODELEXECUTE m INPUTS 1 t OUTPUTS 1 o"
WRONGTYPE = "WRONGTYPE Operation against a key holding the wrong kind of value"
FIRST = (
    "ERR AI.DAGEXECUTE and AI.DAGEXECUTE_RO commands must contain at least one out of ROUTING, LOAD, PERSIST keywords"
)


@pytest.fixture(scope="module")
def node(shared: Pair) -> Server:
    client = shared[0].client()
    client.execute_command("AI.TENSORSET", "a", "FLOAT", 1)
    client.execute_command("AI.MODELSTORE", "m", "ONNX", "CPU", "BLOB", "x")
    client.execute_command("AI.SCRIPTSTORE", "s", "CPU", "ENTRY_POINTS", 1, "f", "SOURCE", "x")
    client.set("text", "x")
    return shared[0]


@pytest.mark.parametrize(
    ("words", "error"),
    [
        ("", "ERR wrong number of arguments for 'AI.DAGEXECUTE' command"),
        ("LOAD", "ERR missing arguments after LOAD keyword in DAG command"),
        ("PERSIST 1", "ERR missing arguments after PERSIST keyword in DAG command"),
        (f"LOAD x a {GET}", "ERR invalid or negative value found in number of keys to LOAD"),
        (f"PERSIST -1 a {GET}", "ERR invalid or negative value found in number of keys to PERSIST"),
        (f"LOAD 9 a {GET}", "ERR number of keys to LOAD into DAG does not match the number of given arguments"),
        ("ROUTING", "ERR Missing ROUTING value"),
        ("LOAD 1 a TIMEOUT", "ERR No value provided for TIMEOUT"),
        (f"LOAD 1 a TIMEOUT soon {GET}", "ERR Invalid value for TIMEOUT"),
        (f"LOAD 1 a SAVE {GET}", "ERR Invalid DAG command. Unexpected argument:  SAVE"),
        ("LOAD 1 a", "ERR DAG is empty"),
        ("LOAD 1 a |>", "ERR DAG is empty"),
        (f"TIMEOUT 5 {SET}", FIRST),
        (f"LOAD 1 nothing {GET}", "ERR tensor key is empty or in a different shard"),
        (f"LOAD 1 text {GET}", WRONGTYPE),
        (f"ROUTING x {GET}", "ERR INPUT key cannot be found in DAG"),
        (f"ROUTING x {RUN}", "ERR INPUT key cannot be found in DAG"),
        (f"PERSIST 1 o {SET}", "ERR PERSIST key cannot be found in DAG"),
        (f"PERSIST 2 t t {SET}", "ERR PERSIST keys must be unique"),
        ("ROUTING x |> PING", "ERR Unsupported command within DAG"),
        (f"ROUTING x {SET} {RUN} TIMEOUT 5", "ERR TIMEOUT not allowed within a DAG command"),
        (f"ROUTING x {SET} {RUN} SOON", "ERR Invalid argument: SOON"),
        (
            f"ROUTING x {SET} |> AI.MODELRUN m INPUTS t OUTPUTS o",
            "ERR Deprecated AI.MODELRUN cannot be used in AI.DAGEXECUTE command",
        ),
        (
            f"ROUTING x {SET} |> AI.SCRIPTRUN s f INPUTS t OUTPUTS o",
            "ERR Deprecated AI.SCRIPTRUN cannot be used in AI.DAGEXECUTE command",
        ),
        ("ROUTING x |> AI.TENSORSET t FLOAT99 1", "ERR invalid data type"),
        (f"LOAD 1 a {GET} BLOB VALUES", "ERR both BLOB and VALUES specified"),
        (f"ROUTING x {SET} |> AI.MODELEXECUTE none INPUTS 1 t OUTPUTS 1 o", "ERR model key is empty"),
        (
            f"ROUTING x {SET} |> AI.MODELEXECUTE m INPUTS 2 t t OUTPUTS 1 o",
            "Number of keys given as INPUTS here does not match model definition",
        ),
    ],
)
def test_dag_errors_have_the_known_texts(node: Server, words: str, error: str) -> None:
    assert node.error("AI.DAGEXECUTE", *words.split()) == error
    assert node.info()["pending_requests"] == 0


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (f"PERSIST 1 t {SET}", "ERR PERSIST cannot be specified in a read-only DAG"),
        (
            f"ROUTING x {SET} |> AI.SCRIPTEXECUTE s f INPUTS 1 t OUTPUTS 1 o",
            "ERR AI.SCRIPTEXECUTE command cannot be specified in a read-only DAG",
        ),
    ],
)
def test_a_read_only_dag_refuses_what_writes(node: Server, words: str, error: str) -> None:
    assert node.error("AI.DAGEXECUTE_RO", *words.split()) == error


@pytest.mark.parametrize(
    ("words", "error"),
    [
        ("AI.SCRIPTSTORE s CPU ENTRY_POINTS", "ERR wrong number of arguments for 'AI.SCRIPTSTORE' command"),
        ("AI.SCRIPTSTORE s TPU ENTRY_POINTS 1 f SOURCE x", "ERR Invalid DEVICE"),
        ("AI.SCRIPTSTORE s CPU POINTS 1 f SOURCE x", "ERR Invalid argument, expected ENTRY_POINTS"),
        (
            "AI.SCRIPTSTORE s CPU ENTRY_POINTS x f SOURCE x",
            "ERR Non numeric entry points number provided to AI.SCRIPTSTORE command",
        ),
        ("AI.SCRIPTSTORE s CPU ENTRY_POINTS 1 f TEXT x", "ERR Invalid argument, expected SOURCE"),
        ("AI.SCRIPTSET s CPU SOURCE", "ERR wrong number of arguments for 'AI.SCRIPTSET' command"),
        ("AI.SCRIPTGET none", "ERR script key is empty"),
        ("AI.SCRIPTGET m", WRONGTYPE),
        ("AI.SCRIPTGET s BLOB", "ERR unsupported data format"),
        ("AI.SCRIPTDEL none", "ERR script key is empty"),
        ("AI.SCRIPTEXECUTE none f INPUTS 1 a", "ERR script key is empty"),
        ("AI.SCRIPTEXECUTE s f INPUTS x a", "ERR Invalid argument for input_count"),
        (
            "AI.SCRIPTEXECUTE s f INPUTS 2 a",
            "ERR number of input keys to AI.SCRIPTEXECUTE command does not match the number of given arguments",
        ),
        ("AI.SCRIPTEXECUTE s f OUTPUTS 1 a", "ERR KEYS or INPUTS must be specified"),
        ("AI.SCRIPTEXECUTE s f INPUTS 1 a SOON", "ERR Invalid argument: SOON"),
        ("AI.SCRIPTRUN s f INPUTS $ a $ a OUTPUTS o", "ERR Already encountered a variable size list of tensors"),
        ("AI.MODELRUN m OUTPUTS o", "ERR INPUTS not specified"),
        ("AI.MODELRUN m INPUTS a", "ERR OUTPUTS not specified"),
    ],
)
def test_script_errors_have_the_known_texts(node: Server, words: str, error: str) -> None:
    assert node.error(*words.split()) == error


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


def test_scripts_survive_every_kind_of_restart(server: Server) -> None:
    client = server.client()
    client.execute_command("AI.SCRIPTSTORE", "s", "CPU", "TAG", "t", "ENTRY_POINTS", 1, "f", "SOURCE", "one")
    client.execute_command("AI.SCRIPTSET", "old", "CPU", "SOURCE", "two")
    digest = client.execute_command("DEBUG", "DIGEST")
    server.restart(9)
    for preamble in ("yes", "no"):
        assert server.client().execute_command("DEBUG", "DIGEST") == digest
        server.client().config_set("aof-use-rdb-preamble", preamble)
        server.client().bgrewriteaof()
        until(lambda: not server.client().info("persistence")["aof_rewrite_in_progress"])
        server.restart(9)
    assert server.client().execute_command("DEBUG", "DIGEST") == digest


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
