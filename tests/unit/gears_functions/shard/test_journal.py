"""A shard logs what is slow or fails; what its caller did wrong it does not."""

from typing import Any

import pytest

from shardqa.errors import BadLimit, ClusterUnavailable
from shardqa.gears_functions.shard import journal
from shardqa.gears_functions.shard.journal import Journal
from shardqa.request import checked


class Log:
    """A runtime that only logs."""

    def __init__(self) -> None:
        self.lines: list[tuple[str, str]] = []

    def log(self, text: str, level: str = "notice") -> None:
        self.lines.append((level, text))


async def run(log: Log, function: Any) -> Any:
    return await Journal(log).logged("Rank", function, lambda record: f"request {record}")("a-1")  # type: ignore[arg-type]


async def answer(record: Any) -> str:
    return "reply"


async def test_what_is_quick_and_well_is_not_logged() -> None:
    log = Log()
    assert await run(log, answer) == "reply"
    assert log.lines == []


async def test_what_is_slow_is_logged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal, "SLOW_SECONDS", 0.0)
    log = Log()
    assert await run(log, answer) == "reply"
    assert log.lines == [("notice", "Rank took 0.0 s (request a-1)")]


async def test_what_fails_is_logged_and_raised() -> None:
    async def fail(record: Any) -> None:
        raise ClusterUnavailable("the reader is gone")

    log = Log()
    with pytest.raises(ClusterUnavailable):
        await run(log, fail)
    assert log.lines == [("warning", "Rank failed: the reader is gone (request a-1)")]


async def test_what_its_caller_did_wrong_is_the_callers_to_know() -> None:
    async def refuse(record: Any) -> None:
        raise BadLimit("k=0")

    log = Log()
    with pytest.raises(BadLimit):
        await run(log, refuse)
    assert log.lines == []


@pytest.mark.parametrize("value", ["a\nb", "", "x" * 65, 5, None, "ä", "a b"])
def test_an_id_that_could_forge_a_line_of_the_log_is_none(value: object) -> None:
    assert checked(value) == ""
