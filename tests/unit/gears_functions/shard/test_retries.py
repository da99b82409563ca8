"""Passages between shards once their slots have settled, against a cluster of this file."""

import asyncio
from collections.abc import Sequence
from typing import Any, cast

import pytest

from shardqa import keys
from shardqa.gears_functions.shard import retries, slots
from shardqa.gears_functions.shard.epochs import ShardEpochs
from shardqa.gears_functions.shard.retries import Settlement, ShardRetries
from shardqa.worker.runtime import Runtime

HERE, GONE = keys.passage("seeds", "Ada", 0), keys.passage("seeds", "Bruno", 0)


class Shard:
    """Plays the Runtime of a shard that serves the slot of one passage alone."""

    def log(self, text: str, level: str = "notice") -> None: ...

    def role(self) -> str:
        return "master"

    async def calls(self, commands: Sequence[Any]) -> list[object]:
        return [f"1 127.0.0.1:1@2 myself,master - 0 0 1 connected {slots.slot_of(HERE)}\n".encode(), []]


async def test_what_settled_on_this_shard_is_read_and_what_went_on_to_another_is_forgotten(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(retries, "MOVING_SECONDS", 0)
    settlement = asyncio.get_running_loop().create_future()

    async def settle(arrival: Settlement) -> set[str]:
        settlement.set_result(arrival)
        return set()

    waiting = ShardRetries(cast(Runtime, Shard()), cast(ShardEpochs, None), settle, list)
    waiting.wait_for_slot(HERE)
    waiting.wait_for_slot(GONE)
    assert await settlement == Settlement(departures=[GONE], arrivals=[HERE], is_scan_due=False)
