"""What the one table of commands promises: documentation, keys, flags, INFO."""

from typing import Any

import pytest
import redis

from .servers import Server  # noqa: TID251 (this package is tests/module)

Pair = tuple[Server, Server]
COMMANDS = {
    "ai.tensorset": (-4, [b"t"], ["AI.TENSORSET", "t", "FLOAT", "1"]),
    "ai.tensorget": (-2, [b"t"], ["AI.TENSORGET", "t"]),
    "ai.modelset": (-4, [b"m"], ["AI.MODELSET", "m", "ONNX", "CPU", "BLOB", "x"]),
    "ai.config": (-2, [], ["AI.CONFIG", "GET", "MODEL_CHUNK_SIZE"]),
    "ai.modelstore": (-6, [b"m"], ["AI.MODELSTORE", "m", "ONNX", "CPU", "BLOB", "x"]),
    "ai.modelget": (-2, [b"m"], ["AI.MODELGET", "m"]),
    "ai.modeldel": (2, [b"m"], ["AI.MODELDEL", "m"]),
    "ai.modelexecute": (-8, [b"m", b"t", b"o"], ["AI.MODELEXECUTE", "m", "INPUTS", "1", "t", "OUTPUTS", "1", "o"]),
    "ai._modelscan": (1, [], ["AI._MODELSCAN"]),
    "ai._scriptscan": (1, [], ["AI._SCRIPTSCAN"]),
    "ai.modelrun": (-3, [b"m", b"t", b"o"], ["AI.MODELRUN", "m", "TIMEOUT", "5", "INPUTS", "t", "OUTPUTS", "o"]),
    "ai.scriptstore": (-7, [b"s"], ["AI.SCRIPTSTORE", "s", "CPU", "ENTRY_POINTS", "1", "f", "SOURCE", "x"]),
    "ai.scriptset": (-5, [b"s"], ["AI.SCRIPTSET", "s", "CPU", "SOURCE", "x"]),
    "ai.scriptget": (-2, [b"s"], ["AI.SCRIPTGET", "s"]),
    "ai.scriptdel": (2, [b"s"], ["AI.SCRIPTDEL", "s"]),
    "ai.scriptexecute": (
        -5,
        [b"s", b"k", b"t", b"o"],
        ["AI.SCRIPTEXECUTE", "s", "f", "INPUTS", "1", "t", "ARGS", "1", "a", "KEYS", "1", "k", "OUTPUTS", "1", "o"],
    ),
    "ai.scriptrun": (-3, [b"s", b"t", b"u", b"o"], ["AI.SCRIPTRUN", "s", "f", "INPUTS", "t", "$", "u", "OUTPUTS", "o"]),
    "ai.dagexecute": (
        -2,
        [b"a", b"z", b"{r}", b"m"],
        [
            *("AI.DAGEXECUTE", "LOAD", "1", "a", "PERSIST", "1", "z", "ROUTING", "{r}", "|>"),
            *("AI.MODELEXECUTE", "m", "INPUTS", "1", "a", "OUTPUTS", "1", "z"),
        ],
    ),
    "ai.dagexecute_ro": (
        -2,
        [b"{r}", b"m"],
        [
            *("AI.DAGEXECUTE_RO", "ROUTING", "{r}", "|>"),
            *("AI.MODELEXECUTE", "m", "INPUTS", "1", "a", "OUTPUTS", "1", "z"),
        ],
    ),
    "ai.dagrun": (-2, [b"z"], ["AI.DAGRUN", "PERSIST", "1", "z", "|>", "AI.TENSORSET", "z", "FLOAT", "1"]),
    "ai.dagrun_ro": (-2, [b"a"], ["AI.DAGRUN_RO", "LOAD", "1", "a", "|>", "AI.TENSORGET", "a"]),
    "ai.info": (-2, [b"m"], ["AI.INFO", "m"]),
    "rg.pyexecute": (-2, [], ["RG.PYEXECUTE", "1"]),
    "rg.trigger": (-2, [], ["RG.TRIGGER", "x"]),
    "rg.triggeronkey": (-3, [b"k"], ["RG.TRIGGERONKEY", "x", "k"]),
    "rg.dumpregistrations": (-1, [], ["RG.DUMPREGISTRATIONS"]),
    "rg.unregister": (2, [], ["RG.UNREGISTER", "x"]),
    "rg.clearregistrationsstats": (1, [], ["RG.CLEARREGISTRATIONSSTATS"]),
    "rg.pauseregistrations": (-2, [], ["RG.PAUSEREGISTRATIONS", "x"]),
    "rg.unpauseregistrations": (-2, [], ["RG.UNPAUSEREGISTRATIONS", "x"]),
    "rg.pydumpsessions": (-1, [], ["RG.PYDUMPSESSIONS"]),
    "rg.pydumpreqs": (1, [], ["RG.PYDUMPREQS"]),
    "rg.pystats": (1, [], ["RG.PYSTATS"]),
    "rg.pylogs": (-1, [], ["RG.PYLOGS"]),
    "rg.pyprofile": (-3, [], ["RG.PYPROFILE", "STATS", "x"]),
    "rg.dumpexecutions": (-1, [], ["RG.DUMPEXECUTIONS"]),
    "rg.getexecution": (-2, [], ["RG.GETEXECUTION", "x"]),
    "rg.getresults": (2, [], ["RG.GETRESULTS", "x"]),
    "rg.getresultsblocking": (2, [], ["RG.GETRESULTSBLOCKING", "x"]),
    "rg.dropexecution": (2, [], ["RG.DROPEXECUTION", "x"]),
    "rg.abortexecution": (2, [], ["RG.ABORTEXECUTION", "x"]),
    "rg.configget": (-2, [], ["RG.CONFIGGET", "x"]),
    "rg.configset": (-3, [], ["RG.CONFIGSET", "x", "y"]),
    "rg.infocluster": (1, [], ["RG.INFOCLUSTER"]),
    "rg.refreshcluster": (1, [], ["RG.REFRESHCLUSTER"]),
    "rg._peer": (-4, [], ["RG._PEER", "x", "y", "z"]),
    "rg._register": (2, [], ["RG._REGISTER", "x"]),
    "rg._unregister": (2, [], ["RG._UNREGISTER", "x"]),
    "shardqa.get": (2, [b"k"], ["shardqa.get", "k"]),
    "shardqa.hook": (-2, [b"k", b"l"], ["shardqa.hook", "MSET", "k", "1", "l", "2"]),
    "shardqa.hookread": (-2, [b"k"], ["shardqa.hookread", "HGET", "k", "f"]),
}
READ_ONLY = {
    *("ai.scriptget", "ai._scriptscan", "ai.dagexecute_ro", "ai.dagrun_ro"),
    *("ai.tensorget", "ai.modelget", "ai._modelscan", "ai.info", "rg.dumpregistrations", "shardqa.get"),
    "shardqa.hookread",
    *("rg.dumpexecutions", "rg.getexecution", "rg.getresults", "rg.getresultsblocking"),
    *("rg.pydumpsessions", "rg.pydumpreqs", "rg.pystats", "rg.pylogs", "rg.pyprofile"),
    *("rg.configget", "rg.infocluster", "rg.refreshcluster"),
}

NO_KEYSPACE = {  # neither read nor write
    *("rg.trigger", "rg.dropexecution", "rg.abortexecution", "rg.configset", "rg._peer"),
    *("rg.clearregistrationsstats", "rg.pauseregistrations", "rg.unpauseregistrations"),
}


def as_dict(flat: list[Any]) -> dict[str, Any]:
    return {k.decode(): v for k, v in zip(flat[::2], flat[1::2], strict=True)}


def test_the_table_here_is_the_modules_table(shared: Pair) -> None:
    listed = shared[0].client().execute_command("COMMAND LIST", "FILTERBY", "MODULE", "shardqa")
    assert {c.decode().lower() for c in listed} == set(COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_is_documented_with_its_arguments(shared: Pair, name: str) -> None:
    (_, flat), arity = shared[0].client().execute_command("COMMAND DOCS", name), COMMANDS[name][0]
    docs = as_dict(flat)
    assert docs["summary"]
    assert docs["complexity"]
    assert docs["since"] == b"0.1.0"
    assert docs["module"] == b"shardqa"
    assert ("arguments" in docs) == (arity != 1)


@pytest.mark.parametrize("name", [n for n, (_, keys, _) in COMMANDS.items() if keys])
def test_the_keys_of_every_command_are_found(shared: Pair, name: str) -> None:
    _, keys, words = COMMANDS[name]
    assert [k.encode() for k in shared[0].client().execute_command("COMMAND GETKEYS", *words)] == keys


@pytest.mark.parametrize("name", COMMANDS)
def test_arity_and_flags_are_what_the_command_does(shared: Pair, name: str) -> None:
    info = shared[0].client().connection_pool.get_connection()
    info.send_command("COMMAND", "INFO", name)
    (found,) = info.read_response()
    flags = {f.decode() for f in found[2]}
    assert found[1] == COMMANDS[name][0]
    assert ("readonly" in flags) == (name in READ_ONLY)
    assert ("write" in flags) == (name not in READ_ONLY | NO_KEYSPACE)


STORES = [
    *("ai.tensorset", "ai.modelset", "ai.modelstore", "ai.modelexecute", "ai.modelrun", "ai.scriptset"),
    *("ai.scriptstore", "ai.scriptexecute", "ai.scriptrun", "ai.dagexecute", "ai.dagrun"),
]


def test_with_full_memory_commands_that_store_are_refused_and_no_others(server: Server) -> None:
    server.client().config_set("maxmemory", "1")
    errors = {name: server.error(*words) for name, (_, _, words) in COMMANDS.items() if name in STORES}
    assert all(error.startswith("OOM") for error in errors.values()), errors
    for words in (["AI.MODELDEL", "m"], ["AI.SCRIPTDEL", "s"], ["AI.TENSORGET", "t"], ["AI.MODELGET", "m"]):
        assert "empty" in server.error(*words)
    assert server.client().execute_command("AI._MODELSCAN") == []


@pytest.mark.parametrize("name", sorted(READ_ONLY - {"ai._modelscan", "ai._scriptscan", "rg.dumpregistrations"}))
def test_who_may_only_read_a_key_may_use_the_reading_commands(shared: Pair, name: str) -> None:
    client = shared[0].client()
    client.execute_command("AI.TENSORSET", "t", "FLOAT", "1")
    client.execute_command("ACL", "SETUSER", "reader", "reset", "on", ">p", "%R~*", "+@all")
    words = COMMANDS[name][2]
    connection = shared[0].client(username="reader", password="p").connection_pool.get_connection()
    connection.send_command(*words)
    refused = False
    try:
        connection.read_response()
    except redis.ResponseError as error:
        refused = isinstance(error, redis.exceptions.NoPermissionError)
    assert not refused
    assert "NOPERM" in shared[0].error("AI.TENSORSET", "t", "FLOAT", "1", login=("reader", "p"))


@pytest.mark.parametrize("name", [n for n, (arity, *_) in COMMANDS.items() if abs(arity) > 1])
def test_too_few_arguments_are_an_error(shared: Pair, name: str) -> None:
    assert f"wrong number of arguments for '{name}' command" in shared[0].error(name).lower()


def test_info_shows_link_counters_content_latency_and_worker(shared: Pair) -> None:
    shared[0].order("echo", "x")
    info = shared[0].info()
    assert info["worker_state"] == "ready"
    assert info["worker_pid"] > 0
    assert info["worker_versions"] == "python fake"
    assert info["requests"] > 0
    assert info["trigger_count"] > 0
    assert info["trigger_us_p99"] >= info["trigger_us_p50"] > 0
    for name in (
        "queue_bytes",
        "waiting_clients",
        "hook_hits",
        "models",
        "registrations",
        "miss_us_p99",
        "execute_us_p50",
    ):
        assert name in info
    sections = shared[0].client().execute_command("INFO", "shardqa")
    assert isinstance(sections, dict) or b"# shardqa_link" in sections


def test_the_module_cannot_be_unloaded_and_redis_says_so(shared: Pair) -> None:
    assert "exports one or more module-side data types" in shared[0].error("MODULE", "UNLOAD", "shardqa")
