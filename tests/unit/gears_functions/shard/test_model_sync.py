"""Why a shard has no copy of a model, in the words of the fault, against peers of this file."""

import asyncio
from collections.abc import Sequence
from typing import Any, cast

import pytest
from redis import ResponseError

from shardqa import keys
from shardqa.errors import ClusterUnavailable, WritesRefused
from shardqa.gears_functions.shard import pushed_models, stray_models
from shardqa.gears_functions.shard.model_sync import ModelSync
from shardqa.models.pushed import pushed_label
from shardqa.models.scoring import shipped_scoring
from shardqa.worker.runtime import Runtime

WITHOUT = [b'{"tag":"8YG","indexing":false,"passages":1,"refuses":null}']
SILENT = ResponseError("ERR shard 10.0.0.2:7000 did not answer: TimeoutError")
FULL = ResponseError("OOM command not allowed when used memory > 'maxmemory'.")


class Shard:
    """Plays the Runtime for ModelSync; the model is nowhere."""

    def __init__(self, *peers: Any, room: object = 0, pushes: Sequence[Any] = ()) -> None:
        self._peers, self._room = list(peers), room
        self._pushes = list(pushes)  # replies, one after another
        self.requests = 0  # times that peers were

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
        self.requests += 1
        push = self._pushes.pop(0) if args[1] == "Push" and self._pushes else [b"0"]
        return [push if args[1] == "Push" and not isinstance(peer, Exception) else peer for peer in self._peers]


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
    assert shard.requests == 2  # which shards there are, and the one whether it sends


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
    assert shard.requests == 0


async def test_a_shard_that_still_sends_is_asked_again_and_its_refusal_is_told() -> None:
    refusal = ResponseError("ERR the model is larger than 1 GiB")
    shard = Shard(WITHOUT, pushes=[[b"2"], [b"2"], refusal])
    said = str(await why(shard))
    assert shard.requests == 4
    assert said == "the model 'reader' could not be copied from another shard: ERR the model is larger than 1 GiB"


class LabelledShard(Shard):
    def model_tag(self, key: str) -> str:
        assert key == keys.model("reader", "06S")
        return "reader@0123"


def test_a_copy_whose_label_is_silent_is_scored_the_shipped_way() -> None:
    assert ModelSync(cast(Runtime, LabelledShard())).scoring("reader") == shipped_scoring()


class LeavingShard(Shard):
    """A shard whose slot leaves with a pushed model that is too large to go along; others have these copies."""

    def __init__(self, *copies: list[bytes]) -> None:
        super().__init__(*copies)
        self.dropped: list[str] = []
        self.looked = asyncio.Event()

    def watch(self, *arguments: Any) -> None:
        self.resync = arguments[-1]

    def role(self) -> str:
        return "master"

    def models_above(self, size: int) -> list[str]:
        return [keys.model("large", "06S")]

    async def calls(self, commands: Sequence[Any]) -> list[object]:
        return [LEAVING, ResponseError("ERR functions may use no CLUSTER GETSLOTMIGRATIONS")]

    async def call(self, *args: Any) -> Any:
        if args[0] == "AI.MODELGET":
            return [b"tag", pushed_label("large", "0123").encode()]
        assert args[0] == "UNLINK"
        self.dropped.append(args[1])
        return 1

    async def peers(self, *args: Any) -> list[Any]:
        self.looked.set()
        return [self._peers]


LEAVING = b"%b 10.0.0.1:7000@17000 myself,master - 0 0 1 connected 0-9 [0->-%b]\n" % (b"a" * 40, b"b" * 40)


@pytest.mark.parametrize("others_have_it", [True, False])
async def test_what_is_too_large_to_leave_with_its_slot_is_dropped_where_another_shard_has_it(
    others_have_it: bool,
) -> None:
    label = pushed_label("large", "0123" if others_have_it else "other").encode()
    shard = LeavingShard([keys.model("large", "abc").encode(), label])
    sync = ModelSync(cast(Runtime, shard))
    await shard.resync("start")
    await asyncio.wait_for(shard.looked.wait(), 20)
    for _ in range(20):  # what it does about it waits for nothing
        await asyncio.sleep(0)
    assert shard.dropped == ([keys.model("large", "06S")] if others_have_it else [])
    del sync


class RenamedShard(LeavingShard):
    """It has the only copy of a pushed model, under the tag that it had before."""

    def models_above(self, size: int) -> list[str]:
        return []

    async def calls(self, commands: Sequence[Any]) -> list[object]:
        if commands[0][0] != "CLUSTER":
            return [0]
        return [LEAVING.partition(b" [")[0], ResponseError("ERR functions may use no CLUSTER GETSLOTMIGRATIONS")]

    async def call(self, *args: Any) -> Any:
        copy = [keys.model("large", "former").encode(), pushed_label("large", "0123").encode()]
        return [copy] if args[0] == "AI._MODELSCAN" else 0

    async def peers(self, *args: Any) -> list[Any]:
        if "Push" in args:
            self.looked.set()
        return [WITHOUT] if "Shard" in args else [[b"0"]] if "Push" in args else [[]]


async def test_a_shard_with_the_only_copy_under_a_former_tag_asks_for_its_own() -> None:
    shard = RenamedShard()
    sync = ModelSync(cast(Runtime, shard))
    await shard.resync("start")
    await asyncio.wait_for(shard.looked.wait(), 20)
    del sync


class JoiningShard(RenamedShard):
    """It got its functions before it knew of its first slot."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []

    def hashtag(self) -> str:
        self.tags.append("06S")
        if len(self.tags) == 1:
            raise ResponseError("CLUSTERDOWN this node owns no slots and so has no hashtag; add it to the cluster")
        return self.tags[-1]


async def test_a_shard_that_has_no_slot_yet_looks_for_pushed_models_once_it_has(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pushed_models, "LOOK_SECONDS", 0.001)
    shard = JoiningShard()
    sync = ModelSync(cast(Runtime, shard))
    await shard.resync("start")
    await asyncio.wait_for(shard.looked.wait(), 20)
    del sync


class CrowdedShard(RenamedShard):
    """While it lists its models, another shard's copy of one comes."""

    def __init__(self) -> None:
        super().__init__()
        self.keys = [keys.model("large", "06S")]
        self.has_dropped = asyncio.Event()
        self.sync = ModelSync(cast(Runtime, self))

    async def call(self, *args: Any) -> Any:
        label = pushed_label("large", "0123").encode()
        if args[0] == "UNLINK":
            self.dropped.append(args[1])
            self.has_dropped.set()
            return 1
        found = [[key.encode(), label] for key in self.keys]
        if len(self.keys) == 1:
            self.keys.append(keys.model("large", "abc"))
            await self.sync.arrived([])
        return found


async def test_a_copy_that_comes_while_the_shard_looks_for_such_is_dropped_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stray_models, "LOOK_SECONDS", 0.001)
    shard = CrowdedShard()
    await shard.sync.arrived([])
    await asyncio.wait_for(shard.has_dropped.wait(), 20)
    assert shard.dropped == [keys.model("large", "abc")]
