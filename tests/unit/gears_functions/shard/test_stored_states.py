"""Stored states keep to their budget, stay while they are wanted, and are passed over where Redis refuses them."""

import asyncio
from collections.abc import Sequence
from time import monotonic
from typing import Any, cast

import pytest
from redis import ResponseError

from shardqa import keys
from shardqa.gears_functions.runtime import KeyEvent, Runtime
from shardqa.gears_functions.shard import stored_states
from shardqa.gears_functions.shard.stored_states import LIFE, StoredStates

BUDGET = 100
ONE, TWO, THREE = (keys.passage("c", document, 0) for document in ("one", "two", "three"))
NAMES = {passage: keys.states_of_passage(passage) for passage in (ONE, TWO, THREE)}


class Keyspace:
    """What StoredStates asks of a Runtime, on a dict."""

    def __init__(self) -> None:
        self.values = dict[str, bytes]()
        self.gone = set[str]()  # passages
        self.refusal: Exception | None = None
        self.sent = list[Sequence[Any]]()

    def stored_states(self) -> int:
        return BUDGET

    def role(self) -> str:
        return "master"

    def watch(self, prefix: str, changed: Any, resync: Any) -> None:
        self.changed, self.resync = changed, resync

    def log(self, text: str, level: str = "notice") -> None: ...

    def stat(self, name: str, value: Any) -> None: ...

    async def call(self, *args: Any) -> Any:
        assert args[0] == "SCAN"
        return b"0", [name.encode() for name in self.values]

    async def calls(self, commands: Sequence[Sequence[Any]]) -> list[Any]:
        self.sent += commands
        return [self._reply(*command) for command in commands]

    def _reply(self, word: str, name: Any, *more: Any) -> Any:
        name = name.decode() if isinstance(name, bytes) else name
        if word == "SET":
            if self.refusal is not None:
                return self.refusal
            self.values[name] = more[0]
            return b"OK"
        if word == "EXISTS":
            return int(name not in {keys.tokens_of_passage(passage) for passage in self.gone})
        if word == "UNLINK":
            return int(self.values.pop(name, None) is not None)
        if word == "GETEX":
            return self.values.get(name)
        if word == "STRLEN":
            return len(self.values.get(name, b""))
        return 1


async def opened(keyspace: Keyspace) -> StoredStates:
    found = StoredStates(cast(Runtime, keyspace))
    found.follow()
    await keyspace.resync("start")
    return found


async def test_what_was_written_is_read_and_what_was_not_is_empty() -> None:
    states = await opened(Keyspace())
    await states.write({ONE: b"1" * 30})
    assert await states.read([ONE, TWO]) == [b"1" * 30, b""]


async def test_another_worker_finds_what_the_last_one_wrote() -> None:
    keyspace = Keyspace()
    await (await opened(keyspace)).write({ONE: b"1" * 30})
    assert await (await opened(keyspace)).read([ONE]) == [b"1" * 30]


async def test_they_keep_to_their_budget_and_what_goes_leaves_its_room() -> None:
    keyspace = Keyspace()
    states = await opened(keyspace)
    await states.write({ONE: b"1" * 60, TWO: b"2" * 60})
    assert list(keyspace.values) == [NAMES[ONE]]
    await states.write({ONE: b"1" * 99})
    assert len(keyspace.values[NAMES[ONE]]) == 99
    del keyspace.values[NAMES[ONE]]
    await keyspace.changed([KeyEvent("evicted", NAMES[ONE], "none")])
    await states.write({TWO: b"2" * 60})
    assert list(keyspace.values) == [NAMES[TWO]]


async def test_what_others_put_there_counts() -> None:
    keyspace = Keyspace()
    states = await opened(keyspace)
    keyspace.values[NAMES[ONE]] = b"1" * 90
    await keyspace.changed([KeyEvent("restore", NAMES[ONE], "string")])
    await states.write({TWO: b"2" * 20})
    assert NAMES[TWO] not in keyspace.values
    assert states.keys_of([ONE, TWO]) == [NAMES[ONE]]


async def test_states_of_a_passage_that_was_deleted_meanwhile_do_not_stay() -> None:
    keyspace = Keyspace()
    states = await opened(keyspace)
    keyspace.gone = {ONE}
    await states.write({ONE: b"1", TWO: b"2"})
    assert list(keyspace.values) == [NAMES[TWO]]


async def test_after_a_refusal_nothing_is_written_for_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    keyspace = Keyspace()
    states = await opened(keyspace)
    keyspace.refusal = ResponseError("OOM command not allowed when used memory > 'maxmemory'.")
    await states.write({ONE: b"1"})
    keyspace.refusal = None
    await states.write({TWO: b"2"})
    assert keyspace.values == {}
    monkeypatch.setattr(stored_states, "monotonic", lambda: float("inf"))
    await states.write({TWO: b"2"})
    assert list(keyspace.values) == [NAMES[TWO]]


async def test_now_and_then_all_begin_their_life_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    keyspace = Keyspace()
    states = await opened(keyspace)
    await states.write({ONE: b"1"})
    keyspace.sent.clear()
    await states.renew()
    assert keyspace.sent == []
    now = monotonic() + LIFE / 2
    monkeypatch.setattr(stored_states, "monotonic", lambda: now)
    await states.renew()
    await states.renew()
    assert keyspace.sent == [("EXPIRE", NAMES[ONE], LIFE)]


async def test_nothing_is_read_before_the_keyspace_was_looked_at() -> None:
    keyspace = Keyspace()
    keyspace.values[NAMES[ONE]] = b"1"
    states = StoredStates(cast(Runtime, keyspace))
    states.follow()
    reading = asyncio.create_task(states.read([ONE]))
    await asyncio.sleep(0)
    assert not reading.done()
    await keyspace.resync("start")
    assert await reading == [b"1"]
