"""The one table of commands keeps its promises: documentation, keys, flags, INFO."""

from dataclasses import dataclass
from typing import Any

import pytest
import redis

from .servers import Server  # noqa: TID251 (this package is tests/module)

Pair = tuple[Server, Server]
TABLE = """
-4 stores t AI.TENSORSET t FLOAT 1
-2 reads t AI.TENSORGET t
-4 stores m AI.MODELSET m ONNX CPU BLOB x
-2 writes - AI.CONFIG GET MODEL_CHUNK_SIZE
-6 stores m AI.MODELSTORE m ONNX CPU BLOB x
-2 reads m AI.MODELGET m
2 writes m AI.MODELDEL m
-8 stores m,t,o AI.MODELEXECUTE m INPUTS 1 t OUTPUTS 1 o
1 reads - AI._MODELSCAN
1 reads - AI._SCRIPTSCAN
-3 stores m,t,o AI.MODELRUN m TIMEOUT 5 INPUTS t OUTPUTS o
-5 stores s AI.SCRIPTSTORE s CPU ENTRY_POINTS 1 f SOURCE x
-5 stores s AI.SCRIPTSET s CPU SOURCE x
-2 reads s AI.SCRIPTGET s
2 writes s AI.SCRIPTDEL s
-5 stores s,k,t,o AI.SCRIPTEXECUTE s f INPUTS 1 t ARGS 1 a KEYS 1 k OUTPUTS 1 o
-3 stores s,t,u,o AI.SCRIPTRUN s f INPUTS t $ u OUTPUTS o
-1 stores a,z,{r},m AI.DAGEXECUTE LOAD 1 a PERSIST 1 z ROUTING {r} |> AI.MODELEXECUTE m INPUTS 1 a OUTPUTS 1 z
-1 reads {r},m AI.DAGEXECUTE_RO ROUTING {r} |> AI.MODELEXECUTE m INPUTS 1 a OUTPUTS 1 z
-2 stores z AI.DAGRUN PERSIST 1 z |> AI.TENSORSET z FLOAT 1
-2 reads a AI.DAGRUN_RO LOAD 1 a |> AI.TENSORGET a
-2 reads m AI.INFO m
-2 writes - RG.PYEXECUTE 1
-2 neither - RG.TRIGGER x
-3 writes k RG.TRIGGERONKEY x k
-1 reads - RG.DUMPREGISTRATIONS
-2 writes - RG.UNREGISTER x
1 neither - RG.CLEARREGISTRATIONSSTATS
-2 neither - RG.PAUSEREGISTRATIONS x
-2 neither - RG.UNPAUSEREGISTRATIONS x
-1 reads - RG.PYDUMPSESSIONS
1 reads - RG.PYDUMPREQS
1 reads - RG.PYSTATS
-1 reads - RG.PYLOGS
-3 reads - RG.PYPROFILE STATS x
-1 reads - RG.DUMPEXECUTIONS
-2 reads - RG.GETEXECUTION x
2 reads - RG.GETRESULTS x
2 reads - RG.GETRESULTSBLOCKING x
2 neither - RG.DROPEXECUTION x
2 neither - RG.ABORTEXECUTION x
-2 reads - RG.CONFIGGET x
-3 neither - RG.CONFIGSET x y
1 reads - RG.INFOCLUSTER
1 reads - RG.REFRESHCLUSTER
-4 neither - RG._PEER x y z
1 reads - AI.HELP
1 reads - RG.HELP
-1 reads - RG.DUMPPLUGINS
-1 reads - RG.PYEXPORTREQ
-1 reads - RG.PYIMPORTREQ
-1 reads - RG.PYFREEINTERPRETER
-1 reads - RG.HELLO
-1 reads - RG.NETWORKTEST
-1 reads - RG.CLUSTERSET
-1 reads - RG.PYEXECUTEREMOTE
2 writes - RG._REGISTER x
2 writes - RG._UNREGISTER x
2 reads k shardqa.get k
2 reads - shardqa.info shardqa
-2 writes k,l shardqa.hook MSET k 1 l 2
-2 reads k shardqa.hookread HGET k f
"""
"""Arity, what it does to the keyspace, the keys of an example, and the example."""


@dataclass(frozen=True, slots=True)
class Command:
    arity: int
    effect: str
    keys: list[bytes]
    words: list[str]

    @staticmethod
    def read(line: str) -> "Command":
        arity, effect, keys, *words = line.split()
        return Command(int(arity), effect, [key.encode() for key in keys.split(",") if key != "-"], words)


COMMANDS = {command.words[0].lower(): command for command in map(Command.read, TABLE.strip().splitlines())}


def as_dict(flat: list[Any]) -> dict[str, Any]:
    return {k.decode(): v for k, v in zip(flat[::2], flat[1::2], strict=True)}


def test_the_table_here_is_the_modules_table(shared: Pair) -> None:
    listed = shared[0].client().execute_command("COMMAND LIST", "FILTERBY", "MODULE", "shardqa")
    assert {c.decode().lower() for c in listed} == set(COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_is_documented_with_its_arguments(shared: Pair, name: str) -> None:
    (_, flat), arity = shared[0].client().execute_command("COMMAND DOCS", name), COMMANDS[name].arity
    docs = as_dict(flat)
    assert docs["summary"]
    assert docs["complexity"]
    assert docs["since"] == b"0.1.0"
    assert docs["module"] == b"shardqa"
    assert ("arguments" in docs) == (arity != 1)


@pytest.mark.parametrize("name", [name for name, command in COMMANDS.items() if command.keys])
def test_the_keys_of_every_command_are_found(shared: Pair, name: str) -> None:
    found = shared[0].client().execute_command("COMMAND GETKEYS", *COMMANDS[name].words)
    assert [key.encode() for key in found] == COMMANDS[name].keys


@pytest.mark.parametrize("name", COMMANDS)
def test_arity_and_flags_are_what_the_command_does(shared: Pair, name: str) -> None:
    info = shared[0].send("COMMAND", "INFO", name)
    (found,) = info.read_response()
    flags = {f.decode() for f in found[2]}
    assert found[1] == COMMANDS[name].arity
    assert ("readonly" in flags) == (COMMANDS[name].effect == "reads")
    assert ("write" in flags) == (COMMANDS[name].effect in ("writes", "stores"))


def test_with_full_memory_commands_that_store_are_refused_and_no_others(server: Server) -> None:
    server.client().config_set("maxmemory", "1")
    errors = {name: server.error(*command.words) for name, command in COMMANDS.items() if command.effect == "stores"}
    assert all(error.startswith("OOM") for error in errors.values()), errors
    for words in (["AI.MODELDEL", "m"], ["AI.SCRIPTDEL", "s"], ["AI.TENSORGET", "t"], ["AI.MODELGET", "m"]):
        assert "empty" in server.error(*words)
    assert server.client().execute_command("AI._MODELSCAN") == []


@pytest.mark.parametrize(
    "name", [name for name, command in COMMANDS.items() if command.effect == "reads" and len(command.words) > 1]
)
def test_who_may_only_read_a_key_may_use_the_reading_commands(shared: Pair, name: str) -> None:
    client = shared[0].client()
    client.execute_command("AI.TENSORSET", "t", "FLOAT", "1")
    client.execute_command("ACL", "SETUSER", "reader", "reset", "on", ">p", "%R~*", "+@all")
    words = COMMANDS[name].words
    connection = shared[0].send(*words, username="reader", password="p")
    refused = False
    try:
        connection.read_response()
    except redis.ResponseError as error:
        refused = isinstance(error, redis.exceptions.NoPermissionError)
    assert not refused
    assert "NOPERM" in shared[0].error("AI.TENSORSET", "t", "FLOAT", "1", login=("reader", "p"))


@pytest.mark.parametrize("name", [name for name, command in COMMANDS.items() if abs(command.arity) > 1])
def test_too_few_arguments_are_an_error(shared: Pair, name: str) -> None:
    assert f"wrong number of arguments for '{name}' command" in shared[0].error(name).lower()


@pytest.mark.parametrize("family", ["ai", "rg"])
def test_help_lists_each_command_of_its_family(shared: Pair, family: str) -> None:
    head, *lines = shared[0].client().execute_command(f"{family}.help")
    assert b"COMMAND DOCS" in head
    names = {name for name in COMMANDS if name.startswith(f"{family}.") and not name.startswith(f"{family}._")}
    assert {name.decode().lower() for name in lines[::2]} == names
    assert all(text.startswith(b"    ") and text.endswith(b".") for text in lines[1::2])


def test_ai_config_tells_its_subcommands(shared: Pair) -> None:
    assert b"MODEL_CHUNK_SIZE <bytes>" in shared[0].client().execute_command("AI.CONFIG HELP")


def test_info_shows_link_counters_content_latency_and_worker(shared: Pair) -> None:
    shared[0].order("echo", "x")
    info = shared[0].info()
    assert info["worker_state"] == "ready"
    assert info["worker_pid"] > 0
    assert info["worker_versions"] == "python fake"
    assert info["requests"] > 0
    assert info["trigger_count"] > 0
    assert info["trigger_us_p99"] >= info["trigger_us_p50"] > 0
    assert {"queue_bytes", "waiting_clients", "hook_hits", "models", "registrations"} <= set(info)
    assert {"miss_us_p99", "execute_us_p50"} <= set(info)
    sections = shared[0].client().execute_command("INFO", "shardqa")
    assert isinstance(sections, dict) or b"# shardqa_link" in sections


def test_the_module_cannot_be_unloaded_and_redis_says_so(shared: Pair) -> None:
    assert "exports one or more module-side data types" in shared[0].error("MODULE", "UNLOAD", "shardqa")
