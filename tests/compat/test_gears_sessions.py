"""RG.PYDUMPSESSIONS, RG.PYSTATS, RG.PYDUMPREQS, RG.PYPROFILE, and what RedisGears had that this has not."""

import pytest
from redis import Redis, ResponseError

from tests.compat.scripts import echo, fields, send
from tests.nodes import wait_until


def test_a_session_is_listed_with_its_registrations(client: Redis) -> None:
    send(client, "RG.PYEXECUTE", echo("dumped"), "ID", "dumped", "UPGRADE", "DESCRIPTION", "what it is for")
    session, missing = send(client, "RG.PYDUMPSESSIONS", "SESSIONS", "dumped", "nobody")
    assert missing == "Session nobody does not exists"
    names = "ID sessionDescription refCount linked dead requirementInstallationNeeded requirements registrations"
    assert session[::2] == names.split()
    entry = fields(session)
    assert (entry["ID"], entry["sessionDescription"], entry["linked"]) == ("dumped", "what it is for", "primary")
    (id,) = entry["registrations"]
    (session,) = send(client, "RG.PYDUMPSESSIONS", "VERBOSE", "SESSIONS", "dumped")
    (registration,) = fields(session)["registrations"]
    assert fields(registration)["id"] == id
    assert fields(registration)["reader"] == "CommandReader"
    assert "dumped" in [fields(session)["ID"] for session in send(client, "RG.PYDUMPSESSIONS")]
    with pytest.raises(ResponseError, match="Unknown option"):
        send(client, "RG.PYDUMPSESSIONS", "WHAT")


def test_a_session_that_is_replaced_is_dead_while_its_execution_runs(client: Redis) -> None:
    code = "async def f(_):\n    await asyncio.sleep(1000)\nGB('ShardsIDReader').map(f).run()\n" + echo("outlived")
    id = send(client, "RG.PYEXECUTE", "import asyncio\n" + code, "ID", "outlived", "UNBLOCKING")
    assert send(client, "RG.PYDUMPSESSIONS", "DEAD") == []
    send(client, "RG.PYEXECUTE", echo("outlived"), "ID", "outlived", "UPGRADE")
    (session,) = map(fields, send(client, "RG.PYDUMPSESSIONS", "TS"))
    assert (session["ID"], session["dead"]) == ("outlived", "true")
    send(client, "RG.ABORTEXECUTION", id)
    assert send(client, "RG.PYDUMPSESSIONS", "DEAD") == []


def test_the_memory_of_the_worker_is_told_and_that_nothing_is_required(client: Redis) -> None:
    memory = fields(send(client, "RG.PYSTATS"))
    assert list(memory) == ["TotalAllocated", "PeakAllocated", "CurrAllocated"]
    assert 0 < memory["CurrAllocated"] <= memory["PeakAllocated"] <= memory["TotalAllocated"]
    assert send(client, "RG.PYDUMPREQS") == []


def test_a_session_is_profiled_while_the_setting_is_on(client: Redis) -> None:
    code = """
def spend(r):
    return sum(range(1000))
def constant(r):
    return 1
GB('StreamReader').map(spend).register(prefix='profiled', mode='async_local')
GB('CommandReader').map(constant).register(trigger='profiled', mode='async_local')
"""
    send(client, "RG.PYEXECUTE", code, "ID", "profiled", "UPGRADE")
    with pytest.raises(ResponseError, match="ProfileExecutions"):
        send(client, "RG.PYPROFILE", "STATS", "profiled")
    send(client, "RG.CONFIGSET", "ProfileExecutions", "1")
    try:
        assert send(client, "RG.TRIGGER", "profiled") == ["1"]
        text = send(client, "RG.PYPROFILE", "STATS", "profiled", "cumtime")
        assert "(constant)" in text
        client.xadd("profiled", {"n": 1})
        wait_until(lambda: "(spend)" in send(client, "RG.PYPROFILE", "STATS", "profiled"), "it ran")
        assert "cumulative time" in text
    finally:
        send(client, "RG.CONFIGSET", "ProfileExecutions", "0")
    assert send(client, "RG.PYPROFILE", "RESET", "profiled") == "OK"
    for words in (["STATS", "profiled"], ["STATS", "profiled", "beauty"], ["RESET", "nobody"], ["WHAT", "profiled"]):
        with pytest.raises(ResponseError):
            send(client, "RG.PYPROFILE", *words)


@pytest.mark.parametrize("command", [
    "DUMPPLUGINS", "PYEXPORTREQ", "PYIMPORTREQ", "PYFREEINTERPRETER", "NETWORKTEST", "HELLO", "CLUSTERSET",
    "PYEXECUTEREMOTE",
])  # fmt: skip
def test_commands_of_redisgears_inside_are_refused(client: Redis, command: str) -> None:
    with pytest.raises(ResponseError, match=f"RG.{command} is refused: "):
        send(client, f"RG.{command}", "x")
