"""RG.PYDUMPSESSIONS, RG.PYSTATS, RG.PYDUMPREQS, RG.PYPROFILE."""

from typing import Any

import pytest
from redis import Redis, ResponseError

from tests.compat.scripts import echo, send


def fields(pairs: list[Any]) -> dict[str, Any]:
    return dict(zip(pairs[::2], pairs[1::2], strict=True))


def test_a_session_is_listed_with_its_registrations(client: Redis) -> None:
    send(client, "RG.PYEXECUTE", echo("dumped"), "ID", "dumped", "UPGRADE", "DESCRIPTION", "what it is for")
    (session,) = send(client, "RG.PYDUMPSESSIONS", "SESSIONS", "dumped", "nobody")
    assert session[0::2] == [
        *("ID", "sessionDescription", "refCount", "Linked", "TS", "requirementInstallationNeeded"),
        *("requirements", "registrations"),
    ]
    found = fields(session)
    assert (found["ID"], found["sessionDescription"], found["Linked"]) == ("dumped", "what it is for", "true")
    (id,) = found["registrations"]
    (session,) = send(client, "RG.PYDUMPSESSIONS", "VERBOSE", "SESSIONS", "dumped")
    (registration,) = fields(session)["registrations"]
    assert fields(registration)["id"] == id
    assert fields(registration)["reader"] == "CommandReader"
    assert "dumped" in [fields(session)["ID"] for session in send(client, "RG.PYDUMPSESSIONS")]
    assert send(client, "RG.PYDUMPSESSIONS", "TS") == []


def test_a_word_that_pydumpsessions_does_not_know_is_refused(client: Redis) -> None:
    with pytest.raises(ResponseError, match="unknown"):
        send(client, "RG.PYDUMPSESSIONS", "WHAT")


def test_the_memory_of_the_worker_is_told(client: Redis) -> None:
    memory = fields(send(client, "RG.PYSTATS"))
    assert list(memory) == ["TotalAllocated", "PeakAllocated", "CurrAllocated"]
    assert 0 < memory["CurrAllocated"] <= memory["PeakAllocated"] <= memory["TotalAllocated"]


def test_without_requirements_none_are_listed(client: Redis) -> None:
    assert send(client, "RG.PYDUMPREQS") == []


def test_a_session_is_profiled_while_the_setting_is_on(client: Redis) -> None:
    code = """
def spend(r):
    return sum(range(1000))
GB('StreamReader').map(spend).register(prefix='profiled', mode='async_local')
"""
    send(client, "RG.PYEXECUTE", code, "ID", "profiled", "UPGRADE")
    with pytest.raises(ResponseError, match="ProfileExecutions"):
        send(client, "RG.PYPROFILE", "STATS", "profiled")
    send(client, "RG.CONFIGSET", "ProfileExecutions", "1")
    try:
        client.xadd("profiled", {"n": 1})
        wait_for_profile(client)
        text = send(client, "RG.PYPROFILE", "STATS", "profiled", "cumtime")
        assert "spend" in text
        assert "cumulative time" in text
    finally:
        send(client, "RG.CONFIGSET", "ProfileExecutions", "0")
    assert send(client, "RG.PYPROFILE", "RESET", "profiled") == "OK"
    for words in (["STATS", "profiled"], ["STATS", "profiled", "beauty"], ["RESET", "nobody"], ["WHAT", "profiled"]):
        with pytest.raises(ResponseError):
            send(client, "RG.PYPROFILE", *words)


def wait_for_profile(client: Redis) -> None:
    while True:
        try:
            send(client, "RG.PYPROFILE", "STATS", "profiled")
            return
        except ResponseError:
            continue
