"""All that is stored and registered is the same after every kind of restart, and on a replica that was not there."""

from collections.abc import Callable

import pytest

from .servers import Make, Server, replicate, until  # noqa: TID251 (this package is tests/module)

LONG_KEY = b"k" * 70_000


def rewritten(server: Server, preamble: str) -> None:
    server.client().config_set("aof-use-rdb-preamble", preamble)
    server.rewrite()
    server.restart(9)


RESTARTS: dict[str, Callable[[Server], None]] = {
    "a kill": lambda server: server.restart(9),
    "a shutdown": lambda server: server.restart(),
    "a reload": lambda server: server.client(socket_timeout=120).execute_command("DEBUG", "RELOAD"),
    "a rewrite as RDB": lambda server: rewritten(server, "yes"),
    "a rewrite as commands": lambda server: rewritten(server, "no"),
}


def store_all(server: Server) -> None:
    client = server.client()
    client.execute_command("AI.TENSORSET", "t", "FLOAT", 2, "VALUES", 1, 2)
    client.execute_command("AI.TENSORSET", "strings", "STRING", 2, "VALUES", "a", "b")
    client.execute_command("AI.TENSORSET", "scalar", "DOUBLE", "VALUES", 7)
    model = ("AI.MODELSTORE", "m", "ONNX", "CPU", "TAG", "v1", "BATCHSIZE", 3, "BLOB", b"z" * 20_000_000)
    client.execute_command(*model)
    client.execute_command("AI.MODELSTORE", "long", "ONNX", "CPU", "BLOB", "bytes")
    client.rename("long", LONG_KEY)
    client.execute_command("AI.SCRIPTSTORE", "s", "CPU", "TAG", "t", "ENTRY_POINTS", 1, "f", "SOURCE", "one")
    client.execute_command("AI.SCRIPTSET", "old", "CPU", "SOURCE", "two")
    server.hook()


def assert_keys_whole(server: Server) -> None:
    client = server.client()
    scalar = [b"dtype", b"DOUBLE", b"shape", [], b"values", [b"7"]]
    assert client.execute_command("AI.TENSORGET", "scalar", "META", "VALUES") == scalar
    assert client.execute_command("AI.MODELGET", "m", "META")[7] == 3
    assert client.execute_command("AI.MODELGET", LONG_KEY, "BLOB") == b"bytes"
    assert 20_000_000 < client.memory_usage("m") < 40_000_000
    until(lambda: server.info()["models"] == 4)
    until(lambda: client.execute_command("AI.MODELEXECUTE", "m", "INPUTS", 1, "t", "OUTPUTS", 1, "o") == b"OK")
    client.delete("o")


def assert_functions_whole(server: Server) -> None:
    assert (server.info()["sessions"], server.info()["registrations"], server.info()["hooks"]) == (1, 1, 1)
    server.order("misses", "answer")
    assert server.client().get("answer:1") == b"value of answer:1"


def test_all_is_there_after_every_kind_of_restart(server: Server) -> None:
    store_all(server)
    digest = server.client().execute_command("DEBUG", "DIGEST")
    for kind, restart in RESTARTS.items():
        restart(server)
        assert server.client().execute_command("DEBUG", "DIGEST") == digest, kind
        assert_keys_whole(server)
        if kind != "a rewrite as commands":  # which has no form for functions; the log says so at the start
            assert_functions_whole(server)


@pytest.mark.parametrize("load", ["disabled", "swapdb"])
def test_a_new_replica_gets_all(make: Make, load: str) -> None:
    master = make("repl-diskless-sync yes", "repl-diskless-sync-delay 0")
    store_all(master)
    replica = replicate(make, master, f"repl-diskless-load {load}")
    assert replica.client().execute_command("DEBUG", "DIGEST") == master.client().execute_command("DEBUG", "DIGEST")
    assert (replica.info()["registrations"], replica.info()["hooks"]) == (1, 1)
    until(lambda: any(f[9] == "m" for f in replica.seen("MODELLOAD")))
    assert ["RESYNC", "0", "loaded"] in replica.seen("RESYNC")
    assert [f[2:7] for f in replica.seen("SESSION")][-1] == ["hooks", "default", "the code of hooks", "1", "hooks-1"]
