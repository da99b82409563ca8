"""A question's rounds are merged by shard, whichever node each asked."""

from types import SimpleNamespace
from typing import Any

import pytest

from shardqa.bridges import Bridges
from shardqa.engine.rank import PartList, Ranking
from shardqa.engine.shard_parts import ShardPart
from shardqa.rounds import RankReply
from shardqa.statistics import CorpusStatistics


async def test_a_shard_that_a_replica_took_over_between_two_rounds_is_listed_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    before, after = ((ShardPart("c", node), RankReply("06S", 1, [("passage:c", 1.0)])) for node in ("old:1", "new:1"))

    async def lists(*_: object) -> tuple[list[PartList], list[str]]:
        return [after], []

    async def look(*_: object) -> None: ...

    none: Any = None
    ranking = Ranking(none, none)
    monkeypatch.setattr(ranking, "_lists", lists)
    bridge: Any = SimpleNamespace(look=look, bridges=Bridges(1.0, {}), failed=[], others=list)
    statistics = CorpusStatistics(1, 1, 1, 1, {}, {})
    assert (await ranking._led_on(none, 1, statistics, bridge, [before]))[0] == [after]
