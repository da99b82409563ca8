"""Watches get events and resyncs in their order."""

from collections.abc import Sequence

import pytest

from shardqa.worker.gears.registrations.prefix_watches import PROMOTED, Watch
from shardqa.worker.runtime import KeyEvent


async def unused(_: object) -> None:
    raise AssertionError("nobody follows")


def queued(*items: KeyEvent | str) -> list[Sequence[KeyEvent] | str]:
    watch = Watch("session", "passage:", unused, unused)
    for item in items:
        watch.push(item)
    taken = list[Sequence[KeyEvent] | str]()
    while (told := watch._take()) is not None:
        taken.append(told)
    return taken


ONE, TWO = KeyEvent("hset", "passage:one", "hash"), KeyEvent("hset", "passage:two", "hash")


def test_events_that_came_before_a_promotion_are_told_first_since_the_index_serves_meanwhile() -> None:
    assert queued(ONE, PROMOTED, TWO) == [[ONE], PROMOTED, [TWO]]


@pytest.mark.parametrize("reason", ["start", "flushed"])
def test_a_scan_that_questions_wait_for_covers_what_came_before_it(reason: str) -> None:
    assert queued(ONE, reason, TWO) == [reason, [TWO]]
