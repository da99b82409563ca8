"""Operations on two shards whose workers stop at steps: ingest, ask, delete, push, register.

All that clients do and see goes into a history, for the checker.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial

import pytest
from redis.exceptions import RedisError

from shardqa import keys
from shardqa.cluster.local import LocalCluster
from shardqa.engine import Engine
from shardqa.errors import ShardqaError
from shardqa.schema import Answer, Document
from tests.faults import documents
from tests.faults.history import Event, Look, Reply, Write
from tests.faults.over_http import spans_of
from tests.faults.steps import Step, Steps

DOCUMENT = "mill of Arnsby"
DOC = DOCUMENT.encode()
OTHER = "bridge of Arnsby"  # is there all the time
LETTERS = str.maketrans("0123456789.", "abcdefghijk")
SCRIPT = "GB('CommandReader').map(lambda x: 'hello').register(trigger='hello', mode='async_local')"
STEPS = (
    Step("ingest", "a document came", "in", "REQUEST", (b"Ingest",)),
    Step("ingest", "the right to write is asked for", "out", "CALL", (b"HSET", DOC)),
    Step("ingest", "what is there is asked for", "out", "CALL", (b"HMGET", DOC)),
    Step("ingest", "what is there is known", "in", "CALLED", (b"HMGET", DOC)),
    Step("ingest", "passages leave", "out", "CALL", (b"PUBLISH",)),
    Step("ingest", "passages are written", "in", "CALLED", (b"PUBLISH",)),
    Step("ingest", "the client is told", "out", "REPLY", (b'"changed":true',)),
    Step("ask", "its terms are asked for", "in", "REQUEST", (b"Terms",)),
    Step("ask", "its terms are told", "out", "REPLY", (b'"df"',)),
    Step("ask", "passages are ranked", "in", "REQUEST", (b"Rank",)),
    Step("ask", "the ranking is told", "out", "REPLY", (b'"passages":[["',)),
    Step("ask", "a GET missed", "in", "MISS"),
    Step("ask", "passages are loaded", "out", "CALL", (b"AI.TENSORGET",)),
    Step("ask", "passages are there", "in", "CALLED", (b"AI.TENSORGET",)),
    Step("ask", "the answer is told", "out", "REPLY", (b'"spans"',)),
    Step("ask", "the answer is kept", "out", "CALL", (b"answer:",)),
    Step("delete", "a delete came", "in", "REQUEST", (b"Delete",)),
    Step("delete", "passages leave", "out", "CALL", (b"PUBLISH",)),
    Step("delete", "passages are gone", "in", "CALLED", (b"PUBLISH",)),
    Step("delete", "the client is told", "out", "REPLY", (b'"deleted":true',)),
    Step("push", "a model came", "in", "MODELLOAD"),
    Step("push", "it is loaded", "out", "REPLY"),
    Step("register", "a script came", "in", "REQUEST", (b"RG.PYEXECUTE",)),
    Step("register", "another shard prepares", "in", "REQUEST", (b"PREPARE",)),
    Step("register", "it tells the node", "out", "REGISTER"),
    Step("register", "another shard commits", "in", "REQUEST", (b"COMMIT",)),
    Step("register", "the client is told", "out", "RELEASE"),
)


@dataclass(slots=True)
class Shards:
    """Two shards whose workers stop at steps. All that is done goes into `history`."""

    cluster: LocalCluster
    steps: Steps
    engine: Engine
    version: int = 0  # of DOCUMENT, the last that was tried
    written: int = 0  # versions of all documents
    history: list[Event] = field(default_factory=list)

    @property
    def corpus(self) -> str:
        """A corpus of this test alone, so that the history is whole."""
        return self.engine.settings.corpus

    async def ask(self, version: int) -> None:
        """Raises AssertionError where the answer is not this version's, or partial."""
        answer = await self.reply(documents.questions(DOCUMENT, version)[0].text)
        assert not answer.partial, answer.failed
        assert answer.answer == documents.builder(version)

    async def reply(self, question: str) -> Answer:
        begin = time.monotonic()
        text = f"{question} {str(begin).translate(LETTERS)}"  # worded so that no cache knows it, nor a number is meant
        answer = await self.engine.ask(text, fresh=True, n_best=20)
        about = next((name for name in (DOCUMENT, OTHER) if name in question), None)
        self.history.append(Reply(text, about, spans_of(answer), begin, time.monotonic(), answer.partial))
        return answer

    async def put(self, name: str = DOCUMENT) -> None:
        self.written += 1
        text = documents.text(name, self.written)
        if name == DOCUMENT:
            self.version = self.written
        await self._write(name, text, self.engine.documents.put(Document(id=name, title=name, text=text)))

    async def delete(self, name: str = DOCUMENT) -> None:
        self.written += 1
        await self._write(name, None, self.engine.documents.delete(self.corpus, name))

    async def _write(self, name: str, text: str | None, done: Awaitable[object]) -> None:
        version, begin, end = self.written, time.monotonic(), None
        try:
            await done
            end = time.monotonic()
        finally:
            self.history.append(Write(name, version, text, begin, end))

    async def look(self, name: str = DOCUMENT) -> str | None:
        begin = time.monotonic()
        found = await self.engine.documents.get(self.corpus, name)
        text = None if found is None else found.text
        self.history.append(Look(name, text, begin, time.monotonic()))
        return text

    async def passages(self, name: str) -> int:
        """The count that its `doc:` key holds."""
        key = keys.doc(self.corpus, name)
        return int(await self.engine.shards.on(self.engine.shards.owner(key), "HGET", key, "passages"))

    async def keys_of(self, pattern: str) -> list[str]:
        replies = await self.engine.shards.everywhere("KEYS", pattern)
        return sorted(key.decode() for reply in replies for key in reply.value)


async def until(done: Callable[[], Awaitable[object]], what: str, seconds: float = 60.0) -> None:
    """Until `done` raises nothing that passes."""
    deadline, met = time.monotonic() + seconds, ""
    while time.monotonic() < deadline:
        try:
            await done()
            return
        except (ShardqaError, AssertionError, RedisError, OSError) as fault:
            met = f"{type(fault).__name__}: {fault}"
        await asyncio.sleep(0.05)
    pytest.fail(f"{what}: waited {seconds:g} s in vain, last met {met}")


# ---- operations: what is done before the harm, what is done while it happens, what must hold after it was done again


class Operation:
    async def before(self, shards: Shards) -> None:
        await shards.put(OTHER)
        await shards.put()

    async def do(self, shards: Shards) -> None:
        raise NotImplementedError

    async def holds(self, shards: Shards) -> None:
        """Raises AssertionError."""
        raise NotImplementedError


class Ingest(Operation):
    async def do(self, shards: Shards) -> None:
        await shards.put()

    async def holds(self, shards: Shards) -> None:
        assert await shards.look() == documents.text(DOCUMENT, shards.version)
        assert len(await shards.keys_of(f"passage:{shards.corpus}:*:{DOCUMENT}:*")) == 1
        assert len(await shards.keys_of(f"tokens:{shards.corpus}:*:{DOCUMENT}:*")) == 1
        await shards.ask(shards.version)


class Ask(Ingest):
    async def do(self, shards: Shards) -> None:
        await shards.ask(shards.version)


class Delete(Ingest):
    async def do(self, shards: Shards) -> None:
        await shards.delete()

    async def holds(self, shards: Shards) -> None:
        assert await shards.keys_of(f"*:{shards.corpus}:*:{DOCUMENT}*") == []
        answer = await shards.reply(f"Who built the {DOCUMENT}?")
        assert not answer.partial
        assert DOCUMENT not in {found.document for found in answer.n_best}


async def _said(steps: Steps, words: bytes, first: int) -> None:
    assert any(line.startswith(words) for line in steps.lines[first:])


class Push(Ingest):
    """The reader of the document's shard is gone; who asks has it sent from the other shard."""

    async def before(self, shards: Shards) -> None:
        await super().before(shards)
        owner = shards.engine.shards.owner(keys.doc(shards.corpus, DOCUMENT))
        first = len(shards.steps.lines)
        deleted = await shards.engine.shards.on(owner, "KEYS", "model:*")
        for key in deleted:
            await shards.engine.shards.on(owner, "DEL", key.decode())
        if deleted:  # its worker still runs it until it is told
            await until(partial(_said, shards.steps, b"in MODELDROP", first), "the model is dropped")

    async def do(self, shards: Shards) -> None:
        await shards.ask(shards.version)

    async def holds(self, shards: Shards) -> None:
        assert len(await shards.keys_of("model:*")) == 2
        await shards.ask(shards.version)


class Register(Operation):
    async def do(self, shards: Shards) -> None:
        node = shards.engine.shards.nodes()[0]
        await shards.engine.shards.on(node, "RG.PYEXECUTE", SCRIPT, "ID", "hello", "UPGRADE")

    async def holds(self, shards: Shards) -> None:
        for reply in await shards.engine.shards.everywhere("RG.TRIGGER", "hello"):
            assert reply.value == [b"hello"], reply.fault
        for reply in await shards.engine.shards.everywhere("RG.DUMPREGISTRATIONS"):
            assert str(reply.value).count("'hello'") <= 2, reply.value  # its trigger, and its session
        await shards.ask(shards.version)


OPERATIONS: dict[str, type[Operation]] = {
    "ingest": Ingest,
    "ask": Ask,
    "delete": Delete,
    "push": Push,
    "register": Register,
}
