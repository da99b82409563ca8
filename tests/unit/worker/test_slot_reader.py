"""Slots that do not settle, and those that have gone to another shard."""

import asyncio
from typing import Any, cast

import pytest

from shardqa.topology import Node
from shardqa.worker.calls import Calls as WorkerCalls
from shardqa.worker.gears.pipeline import slot_reader
from shardqa.worker.gears.pipeline.slot_reader import SlotMoving, SlotReader

OWN, OTHER = "a" * 40, "b" * 40


class Calls:
    """A node that has slots 0 to 9; `moving` are on their way at looks of those numbers, `lost` the other node's."""

    def __init__(self, moving: tuple[int, ...] = (), lost: tuple[int, ...] = (), at: range = range(10_000)) -> None:
        self.moving, self.lost, self.at, self.looks = moving, lost, at, 0

    def view(self) -> bytes:
        mine = " ".join(str(slot) for slot in range(10) if slot not in self.lost)
        theirs = " ".join(str(slot) for slot in self.lost)
        away = " ".join(f"[{slot}->-{OTHER}]" for slot in self.moving if self.looks in self.at)
        lines = [f"{OWN} 127.0.0.1:1@2 myself,master - 0 0 1 connected {mine} {away}"]
        return "\n".join([*lines, f"{OTHER} 127.0.0.1:3@4 master - 0 0 2 connected {theirs}"]).encode()

    async def run_async(self, _rights: Any, commands: list[tuple[Any, ...]]) -> list[Any]:
        self.looks += 1
        return [self.view() if command[1] == "NODES" else [b"k%d" % command[2]] for command in commands]


def reader(calls: Calls) -> SlotReader:
    async def read(keys: list[bytes]) -> list[Any]:
        return list(keys)

    return SlotReader(cast(WorkerCalls, calls), lambda key: key != b"k3", read)


async def all_of(reading: SlotReader, elsewhere: Any = None) -> list[Any]:
    return sorted([record async for page in reading.records(range(10), elsewhere) for record in page])


async def test_every_slot_is_read_once_and_filtered() -> None:
    assert await all_of(reader(Calls())) == [b"k%d" % n for n in range(10) if n != 3]


async def test_a_slot_that_does_not_settle_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slot_reader, "MOVE_SECONDS", 0.1)
    with pytest.raises(SlotMoving, match="slot 5 was on its way"):
        await all_of(reader(Calls(moving=(5,))))


async def test_a_slot_that_settles_late_is_read_then() -> None:
    assert len(await all_of(reader(Calls(moving=(5,), at=range(5))))) == 9


async def test_the_time_to_settle_is_each_slot_s_own(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = Calls(moving=(5,), at=range(2, 3))
    monkeypatch.setattr(asyncio.get_running_loop(), "time", lambda: calls.looks * slot_reader.MOVE_SECONDS / 5)
    assert len(await all_of(reader(calls))) == 9


async def test_a_slot_that_has_gone_is_read_by_the_shard_that_has_it_and_by_nobody_in_a_local_run() -> None:
    answers: list[list[Any] | None] = [None, [b"there"]]
    questions: list[tuple[int, str]] = []

    async def elsewhere(slot: int, node: Node) -> list[Any] | None:
        questions.append((slot, node.id))
        return answers.pop(0)

    found = await all_of(reader(Calls(lost=(7,))), elsewhere)
    assert b"there" in found
    assert b"k7" not in found
    assert questions == [(7, OTHER)] * 2
    assert len(await all_of(reader(Calls(lost=(7,))))) == 8
