"""A corpus is removed in slices that hold nobody up, against a keyspace of this file."""

import asyncio
from collections.abc import Sequence
from typing import Any, cast

import pytest
from redis import ResponseError

from shardqa import keys
from shardqa.gears_functions.shard import dropped
from shardqa.gears_functions.shard.dropped import Dropped
from shardqa.worker.runtime import Runtime

DOCUMENTS = 3_000


class Keyspace:
    """Plays Redis for Dropped on a dict; each call is a tick."""

    def __init__(self, names: Sequence[str]) -> None:
        self.names = dict.fromkeys(name.encode() for name in names)
        self.unlinked: list[int] = []  # keys of documents, of each tick that unlinked any
        self.looked_at: list[int] = []  # keys, of each SCAN

    def role(self) -> str:
        return "master"

    def log(self, text: str, level: str = "notice") -> None: ...

    async def call(self, *args: Any) -> Any:
        await asyncio.sleep(0)
        _, cursor, _, pattern, _, count = args
        prefix, suffix = pattern.split("*", 1)
        start = int(cursor)
        listed = self._order[start : start + count] if start else self._begin()[:count]
        self.looked_at.append(len(listed))
        found = [one for one in listed if one.startswith(prefix.encode()) and suffix.strip("*").encode() in one]
        end = start + count
        return (b"0" if end >= len(self._order) else b"%d" % end), [one for one in found if one in self.names]

    def _begin(self) -> list[bytes]:
        self._order = sorted(self.names)
        return self._order

    async def calls(self, commands: Sequence[Sequence[Any]]) -> list[Any]:
        await asyncio.sleep(0)
        replies = list[Any]()
        for word, *names in commands:
            if word == "UNLINK":
                gone = [name if isinstance(name, bytes) else name.encode() for name in names]
                replies.append(sum(self.names.pop(name, b"") is None for name in gone))
            elif word == "SET":
                self.names[names[0].encode()] = None
                replies.append(b"OK")
            else:
                replies.append(ResponseError("ERR This instance has cluster support disabled"))
        gone = [name for word, *names in commands if word == "UNLINK" for name in names if isinstance(name, bytes)]
        if gone:  # marks go by name, as text
            self.unlinked.append(len(gone))
        return replies


def filled() -> tuple[Keyspace, list[str]]:
    """(a keyspace with a corpus to drop and another one, the other's keys)."""
    of = {
        corpus: [
            name
            for number in range(DOCUMENTS)
            for name in (
                keys.doc(corpus, str(number)),
                keys.passage(corpus, str(number), 0),
                keys.tokens(corpus, str(number), 0),
            )
        ]
        for corpus in ("old", "kept")
    }
    return Keyspace([*of["old"], *of["kept"]]), of["kept"]


def removing(keyspace: Keyspace) -> Dropped:
    return Dropped(cast(Runtime, keyspace), lambda corpus, buckets: None)


def tasks() -> set["asyncio.Task[Any]"]:
    """Returns the tasks of the removal, of which there is one at most."""
    return {task for task in asyncio.all_tasks() if "_remove_all" in repr(task.get_coro())}


async def test_no_tick_looks_at_or_unlinks_more_keys_than_a_slice_and_others_go_ahead_between_two() -> None:
    keyspace, others = filled()
    removal, turns = removing(keyspace), 0

    async def other() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    beside = asyncio.create_task(other())
    await removal.mark("old", keys.ALL_BUCKETS, {})
    await asyncio.gather(*tasks())
    beside.cancel()
    assert not removal.corpora()
    assert sum(keyspace.unlinked) == 3 * DOCUMENTS
    assert max(keyspace.looked_at) <= dropped.SCAN_COUNT
    assert max(keyspace.unlinked) <= dropped.SLICE
    assert turns >= len(keyspace.unlinked) >= 3 * DOCUMENTS / dropped.SLICE
    assert set(keyspace.names) == {name.encode() for name in others}


@pytest.mark.parametrize(("why", "hides"), [("MISCONF the disk is full", False), ("OOM memory is full", True)])
async def test_a_corpus_stays_whole_where_redis_removes_nothing(why: str, hides: bool) -> None:
    keyspace, _ = filled()
    removal = removing(keyspace)

    async def refused(commands: Sequence[Sequence[Any]]) -> list[Any]:
        return [ResponseError(why) for _ in commands]

    keyspace.calls = refused  # type: ignore[method-assign]
    if hides:
        await removal.mark("old", keys.ALL_BUCKETS, {})
    else:
        with pytest.raises(ResponseError, match="the disk is full"):
            await removal.mark("old", keys.ALL_BUCKETS, {})
    assert bool(removal.corpora()) is hides
    for task in tasks():
        task.cancel()
