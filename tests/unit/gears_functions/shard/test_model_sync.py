"""Why a shard has no copy of a model, in the words of the fault, against peers of this file."""

from collections.abc import Sequence
from typing import Any, cast

import pytest
from redis import ResponseError

from shardqa.errors import ClusterUnavailable, WritesRefused
from shardqa.gears_functions.runtime import Runtime
from shardqa.gears_functions.shard.model_sync import ModelSync

WITHOUT = [b'{"tag":"8YG","indexing":false,"passages":1,"refuses":null}']
SILENT = ResponseError("ERR shard 10.0.0.2:7000 did not answer: TimeoutError")
FULL = ResponseError("OOM command not allowed when used memory > 'maxmemory'.")


class Shard:
    """What ModelSync asks of a Runtime; the model is nowhere."""

    def __init__(self, *peers: Any, room: object = 0) -> None:
        self._peers, self._room = list(peers), room
        self.asked = 0  # times that peers were

    def hashtag(self) -> str:
        return "06S"

    def watch(self, *_: object) -> None: ...

    def log(self, text: str, level: str = "notice") -> None: ...

    async def call(self, *args: Any) -> int:
        assert args[0] == "EXISTS"
        return 0

    async def calls(self, commands: Sequence[Any]) -> list[object]:
        return [self._room]

    async def peers(self, *args: Any) -> list[Any]:
        self.asked += 1
        return [0 if args[1] == "Push" and not isinstance(peer, Exception) else peer for peer in self._peers]


async def why(shard: Shard, sync: ModelSync | None = None) -> ClusterUnavailable:
    with pytest.raises(ClusterUnavailable) as raised:
        await (sync or ModelSync(cast(Runtime, shard))).obtain("reader")
    return raised.value


async def test_a_model_that_no_shard_has_is_not_looked_for_at_each_question() -> None:
    shard = Shard(WITHOUT)
    sync = ModelSync(cast(Runtime, shard))
    said = [str(await why(shard, sync)) for _ in range(2)]
    assert said[0] == said[1]
    assert said[0].startswith("no shard has the model 'reader'; run 'shardqa prepare'")
    assert shard.asked == 2  # which shards there are, and the one whether it sends


async def test_a_shard_that_is_silent_may_have_it() -> None:
    shard = Shard(WITHOUT, SILENT)
    sync = ModelSync(cast(Runtime, shard))
    for _ in range(2):
        said = str(await why(shard, sync))
        assert said.startswith("no shard that answered has the model 'reader'")
        assert "10.0.0.2:7000 did not answer" in said


async def test_a_shard_without_room_asks_nobody_and_says_so() -> None:
    shard = Shard(WITHOUT, room=FULL)
    fault = await why(shard)
    assert isinstance(fault, WritesRefused)
    assert "memory is full" in str(fault)
    assert shard.asked == 0
