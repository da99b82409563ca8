"""Stored sessions that harm the worker when they are run again, and what works without any worker."""

import signal
from contextlib import nullcontext
from typing import Any

import pytest

from tests.nodes import hanging

from .servers import Make, Server, in_sync, until  # noqa: TID251 (this package is tests/module)

Pair = tuple[Server, Server]


def register(server: Server, session: str) -> None:
    """A session with a hook on `<session>:*` and a trigger of its own name."""
    server.register(
        session,
        [f"{session}-1", "KeysReader", f"{session}:*", "", ["keymiss"], [], ["get r 1 1"]],
        [f"{session}-2", "CommandReader", "", session, [], [], []],
    )


def dumped(server: Server) -> dict[bytes, dict[bytes, Any]]:
    """Entries by id; what the fake worker itself says is left out."""
    entries = server.client().execute_command("RG.DUMPREGISTRATIONS")
    pairs = [dict(zip(e[::2], e[1::2], strict=True)) for e in entries if isinstance(e, list)]
    return {entry[b"id"]: entry for entry in pairs}


def last_error(entry: dict[bytes, Any]) -> str:
    data = entry[b"RegistrationData"]
    return str(dict(zip(data[::2], data[1::2], strict=True))[b"lastError"].decode())


@pytest.mark.parametrize("evil", ["evil-exit", "evil-loop"])
def test_a_session_that_ends_the_worker_twice_is_in_quarantine_and_can_be_removed(make: Make, evil: str) -> None:
    server = make(arguments="TIMEOUT 1000 HEARTBEAT 1000")
    register(server, "afine")
    register(server, evil)
    register(server, "fine")
    server.kill_worker()
    server.restarted(3)  # the kill, and two deaths of the session's making
    info = server.info()
    assert (info["sessions"], info["sessions_inactive"], info["sessions_inactive_ids"]) == (3, 1, evil)
    assert info["worker_last_running"] == f"session {evil}"
    assert "is in quarantine" in server.error("RG.TRIGGER", evil)
    assert "is in quarantine" in server.error("GET", f"{evil}:1")
    assert server.client().get("fine:1") == b"value of fine:1"
    entries = dumped(server)
    assert "is in quarantine" in last_error(entries[f"{evil}-1".encode()])
    assert entries[f"{evil}-2".encode()][b"PD"] == f"{{'sessionName':'{evil}', 'depsList':[]}}".encode()
    for number in (1, 2):
        assert server.client().execute_command("RG.UNREGISTER", f"{evil}-{number}") == b"OK"
    assert server.info()["sessions"] == 2
    server.restart()
    assert server.info()["sessions"] == 2
    assert server.info()["sessions_inactive"] == 0


def test_a_session_in_quarantine_comes_back_with_a_new_script(make: Make) -> None:
    server = make()
    register(server, "evil-exit")
    server.kill_worker()
    server.restarted(3)
    (server.folder / "tame").touch()
    register(server, "evil-exit")
    assert server.info()["sessions_inactive"] == 0
    assert server.client().get("evil-exit:1") == b"value of evil-exit:1"
    server.kill_worker()
    server.restarted(4)
    assert server.info()["sessions_inactive"] == 0


def test_a_session_whose_script_fails_says_why_and_can_be_removed(server: Server) -> None:
    register(server, "evil-raise")
    server.restart()
    assert "ValueError: no" in server.error("GET", "evil-raise:1")
    assert "ValueError: no" in server.error("RG.TRIGGER", "evil-raise")
    assert "ValueError: no" in last_error(dumped(server)[b"evil-raise-1"])
    assert server.info()["sessions_inactive_ids"] == "evil-raise"
    for number in (1, 2):
        assert server.client().execute_command("RG.UNREGISTER", f"evil-raise-{number}") == b"OK"
    assert server.client().get("evil-raise:1") is None


def test_a_session_that_ran_out_of_time_is_run_again_later(server: Server) -> None:
    register(server, "evil-slow")
    server.restart()
    assert "TIMEOUT" in server.error("GET", "evil-slow:1")
    (server.folder / "tame").touch()
    until(lambda: server.info()["sessions_inactive"] == 0)
    assert server.client().get("evil-slow:1") == b"value of evil-slow:1"


def test_a_worker_killed_from_outside_blames_no_session(server: Server) -> None:
    register(server, "fine")
    for restarts in range(1, 5):
        server.kill_worker()
        server.restarted(restarts)
    assert server.info()["sessions_inactive"] == 0


def test_unregister_tells_worker_replica_and_append_only_file(pair: Pair) -> None:
    master, replica = pair
    register(master, "fine")
    assert master.client().execute_command("RG.UNREGISTER", "fine-1") == b"OK"
    in_sync(master, replica)
    assert [f[2] for f in replica.seen("FORGET")] == ["fine-1"]
    assert [server.info()["registrations"] for server in pair] == [1, 1]
    assert b"RG._UNREGISTER" in master.aof()
    master.restart(signal.SIGKILL)
    assert master.info()["registrations"] == 1
    assert "does not exist" in master.error("RG.UNREGISTER", "fine-1")


@pytest.mark.parametrize("how", ["silent", "starting", "down"])
def test_without_a_worker_functions_are_listed_and_removed_and_all_is_flushed(make: Make, how: str) -> None:
    server = make(arguments="HEARTBEAT 60000")
    register(server, "fine")
    server.client().mset({f"k{i}": i for i in range(1000)})
    with hanging(server.worker_pid()) if how == "silent" else nullcontext():
        if how == "starting":
            (server.folder / "never-ready").touch()
            server.kill_worker()
        elif how == "down":
            (server.folder / "python").write_text("#!/bin/sh\nexit 1\n")
            server.kill_worker()
            until(lambda: server.info()["worker_restarts"] > 0)  # the next worker was waited for, in vain
        until(lambda: server.info()["worker_state"] == how)
        entries = dumped(server)
        assert sorted(entries) == [b"fine-1", b"fine-2"]
        assert entries[b"fine-1"][b"reader"] == b"KeysReader"
        assert "worker of this node" in last_error(entries[b"fine-1"])
        assert server.client().execute_command("RG.UNREGISTER", "fine-1") == b"OK"
        assert server.client().flushall()
        assert server.client().dbsize() == 0
        assert sorted(dumped(server)) == [b"fine-2"]
