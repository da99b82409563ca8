"""Clients of a cluster that note all they do: some ask, by engines of their own and over HTTP, some write.

Each document has one writer, so that its versions come in order. One asyncio loop owns a Load.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass, field
from random import Random
from time import monotonic

from redis.asyncio import Redis
from redis.exceptions import RedisError

from shardqa import keys
from shardqa.config import Settings
from shardqa.engine import Engine
from shardqa.errors import AnswerTimeout, ClusterUnavailable, ShardqaError, UnknownCorpus
from shardqa.schema import Document
from tests.faults import documents
from tests.faults.history import Event, Look, Reply, Write
from tests.faults.over_http import AnswerView, OverHttp, view_by

PASSING = (AnswerTimeout, ClusterUnavailable)
REPLICATED_MS = 1_000  # that a write waits for a replica to have it
PAUSE = 0.05  # seconds after a fault that passes
DELETES = 0.25  # of all writes
FRESH = 0.2  # of all questions
NEW = 0.5  # of all questions: worded so that no cache knows them


@dataclass(slots=True)
class Record:
    """The history of a load, and what it counted."""

    history: list[Event] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)  # none of those that pass
    retries: list[str] = field(default_factory=list)  # what was told to retry, in words
    slowest: float = 0.0  # answer, seconds


class Stop:
    def __init__(self) -> None:
        self.is_set = False


class Asker:
    """Asks by an engine, or by HTTP where a URL is given."""

    def __init__(self, record: Record, settings: Settings, chance: Random, url: str | None = None) -> None:
        self._record, self._settings, self._chance, self._url = record, settings, chance, url
        self._by = "engine" if url is None else "api"

    async def run(self, stop: Stop) -> None:
        if self._url is None:
            engine = await Engine.connect(self._settings)
            try:
                while not stop.is_set:
                    await self._ask(engine)
            finally:
                await engine.close()
        else:
            async with OverHttp(self._url, self._settings.corpus) as api:
                while not stop.is_set:
                    await self._ask(api)

    async def _ask(self, by: Engine | OverHttp) -> None:
        await asyncio.sleep(0)  # an answer that the engine keeps comes without waiting
        question = self._chance.choice(documents.questions(self._chance.choice(documents.NAMES)))
        text = question.text + (f" {self._chance.randrange(1000)}" if self._chance.random() < NEW else "")
        fresh, begin = self._chance.random() < FRESH, monotonic()
        try:
            answer = await (view_by(by, text, fresh) if isinstance(by, Engine) else by.ask(text, fresh))
        except UnknownCorpus:  # no document is left, or those that are lie on shards that don't answer
            self._record.counts["asked: no document"] += 1
        except PASSING as fault:
            self._record.counts[f"asked, told to retry: {fault.code}"] += 1
            self._record.retries.append(f"{begin:.1f} .. {monotonic():.1f} {self._by} asked {text!r}: {fault}")
            await asyncio.sleep(PAUSE)
        except ShardqaError as fault:
            self._record.faults.append(f"{self._by} asked {text!r}: {fault.code}: {fault}")
        else:
            self._note(question, text, answer, begin)

    def _note(self, question: documents.Question, text: str, answer: AnswerView, begin: float) -> None:
        self._record.counts["asked: partial" if answer.partial else "asked: whole"] += 1
        self._record.slowest = max(self._record.slowest, monotonic() - begin)
        self._record.history.append(
            Reply(text, question.about, answer.spans, begin, monotonic(), answer.partial, self._by, answer.cached)
        )


class Writer:
    """Puts and deletes its own documents, by an engine, or by HTTP where a URL is given."""

    def __init__(
        self,
        record: Record,
        settings: Settings,
        names: Sequence[str],
        chance: Random,
        replicas: int,
        pause: float,
        url: str | None = None,
    ) -> None:
        self._record, self._settings, self._names, self._chance = record, settings, names, chance
        self._replicas = replicas  # that must have a write before it counts as acknowledged
        self._pause = pause
        self._url = url
        self._versions = dict.fromkeys(names, 0)
        self._probes: dict[str, Redis] = {}  # by node

    async def run(self, stop: Stop) -> None:
        engine = await Engine.connect(self._settings)
        try:
            if self._url is None:
                await self._write(engine, None, stop)
            else:
                async with OverHttp(self._url, self._settings.corpus) as api:
                    await self._write(engine, api, stop)
        finally:
            await self.close()
            await engine.close()

    async def _write(self, engine: Engine, by: OverHttp | None, stop: Stop) -> None:
        while not stop.is_set:
            await self.write(engine, self._chance.choice(self._names), self._chance.random() >= DELETES, by)
            await asyncio.sleep(self._chance.random() * 2 * self._pause)

    async def close(self) -> None:
        for probe in self._probes.values():
            await probe.aclose()
        self._probes.clear()

    async def write(self, engine: Engine, name: str, put: bool, by: OverHttp | None = None) -> bool:
        """Writes the next version of a document; True when the cluster acknowledged it, replicated or not."""
        self._versions[name] += 1
        version, begin = self._versions[name], monotonic()
        text = documents.text(name, version) if put else None
        is_taken = is_done = False
        try:
            if text is None:
                await (by or engine.documents).delete(self._settings.corpus, name)
            else:
                await (by or engine.documents).put(Document(id=name, title=name, text=text))
            is_taken = True
            is_done = await self._is_replicated(engine, name)
            self._record.counts["written: acknowledged" if is_done else "written: not replicated in time"] += 1
        except PASSING as fault:
            self._record.counts[f"written, told to retry: {fault.code}"] += 1
            await asyncio.sleep(PAUSE)
        except ShardqaError as fault:
            self._record.faults.append(f"wrote {name!r}: {fault.code}: {fault}")
        self._record.history.append(Write(name, version, text, begin, monotonic() if is_done else None))
        return is_taken

    async def _is_replicated(self, engine: Engine, name: str) -> bool:
        """Whether a replica has it: one that has a later write of the same node has all before it."""
        if self._replicas == 0:
            return True
        key = keys.doc(self._settings.corpus, name)
        node = engine.shards.owner(key)
        probe = self._probes.get(str(node.name))
        if probe is None:
            probe = Redis(host=str(node.host), port=int(node.port), socket_timeout=5, socket_connect_timeout=2)
            self._probes[str(node.name)] = probe
        try:
            async with probe.client() as connection:
                await connection.set(f"probe:{{{keys.bucket(name)}}}", 1, ex=60)
                return int(await connection.execute_command("WAIT", self._replicas, REPLICATED_MS)) >= self._replicas
        except (RedisError, OSError):
            return False


async def under_load(clients: Sequence[Asker | Writer], change: Awaitable[object]) -> None:
    """Awaits `change` while the clients ask and write."""
    stop = Stop()
    async with asyncio.TaskGroup() as group:
        for client in clients:
            group.create_task(client.run(stop))
        try:
            await change
        finally:
            stop.is_set = True


async def look(record: Record, engine: Engine, names: Sequence[str] = documents.NAMES) -> None:
    """Reads every document."""
    for name in names:
        begin = monotonic()
        found = await engine.documents.get(engine.settings.corpus, name)
        record.history.append(Look(name, None if found is None else found.text, begin, monotonic()))
