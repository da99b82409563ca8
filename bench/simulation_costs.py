"""Costs of each hop of a question, measured on real clusters in processor time. See simulation.py."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from common import SHARED, settings_of, temporary_cluster, worker_pid

from shardqa import machine
from shardqa.cluster import node
from shardqa.cluster.local import LocalCluster
from shardqa.engine import Engine
from shardqa.models import squad
from shardqa.schema import Answer, Document

SQUAD = SHARED / "data" / "squad" / "dev-v1.1.json.gz"
MESSAGES = 400  # of one kind


@dataclass(frozen=True, slots=True)
class Costs:
    """Seconds of processor time."""

    question: float  # the engine's, beside messages
    message: float  # the engine's, to send one and take its reply
    terms: float  # a shard's: Redis and worker
    rank: float
    get: float  # of a GET, beside the rows that are read for it
    row: float  # the network on one passage
    plain: float  # of a GET or SET that Redis does alone
    rows: list[int]  # passages read, of each question asked

    @classmethod
    def parse(cls, record: dict[str, Any]) -> Costs:
        return cls(**record)

    def shown(self) -> str:
        names = ("question", "message", "terms", "rank", "get", "row", "plain")
        ms = ", ".join(f"{name} {getattr(self, name) * 1e3:.2f}" for name in names)
        return f"ms of processor time: {ms}; {np.mean(self.rows):.2f} rows a question"


@dataclass(frozen=True, slots=True)
class Checked:
    """A real cluster."""

    shards: int
    askers: int
    processor: float  # seconds of a question, engine and shards together
    messages: float  # of a question
    per_second: float
    cores: float  # that its processes got
    rows: list[int]  # passages read, of each question


class Clock:
    """Processor time of this process and of a cluster's."""

    def __init__(self, cluster: LocalCluster) -> None:
        self._pids = list[int]()
        for _, port in cluster.addresses:
            with node.connected(port) as client:
                self._pids.append(int(client.info("server")["process_id"]))
            self._pids.append(worker_pid(port))

    def now(self) -> tuple[float, float]:
        """(this process, the shards), seconds."""
        return time.process_time(), sum(_ran(pid) for pid in self._pids)


def _ran(pid: int) -> float:
    """In nanoseconds' steps, unlike /proc/PID/stat."""
    found = 0
    for path in Path(f"/proc/{pid}/task").glob("*/schedstat"):
        found += int(path.read_text().split()[0])
    return found / 1e9


@dataclass(frozen=True, slots=True)
class Spent:
    engine: float
    shards: float
    wall: float


async def spent(clock: Clock, work: Callable[[], Awaitable[Any]]) -> Spent:
    engine, shards, start = *clock.now(), time.perf_counter()
    await work()
    ended, wall = clock.now(), time.perf_counter() - start
    return Spent(ended[0] - engine, ended[1] - shards, wall)


@contextmanager
def counted(engine: Engine) -> Iterator[Counter[str]]:
    """Commands that an engine sends to shards."""
    sent, on = Counter[str](), engine.masters.on

    async def count(node: Any, *args: Any, seconds: float | None = None) -> Any:
        sent[str(args[1]) if args[0] == "RG.TRIGGER" else str(args[0])] += 1
        return await on(node, *args, seconds=seconds)

    engine.masters.on = count  # type: ignore[method-assign]
    try:
        yield sent
    finally:
        engine.masters.on = on  # type: ignore[method-assign]


async def fill(engine: Engine, paragraphs: Sequence[squad.Paragraph]) -> None:
    for some in (paragraphs[n : n + 16] for n in range(0, len(paragraphs), 16)):
        await asyncio.gather(*(engine.put(Document(id=one.id, text=one.text, title=one.title)) for one in some))


async def costs_of(engine: Engine, clock: Clock, questions: Sequence[str], others: Sequence[str]) -> Costs:
    """`others` are read as usual, in stages; none of all has been asked before."""
    corpus, every = engine.settings.corpus, [*questions, *others]
    asked = [every[n % len(every)] for n in range(MESSAGES)]

    async def one_by_one(work: Callable[[str], Awaitable[Any]], some: Sequence[str]) -> Spent:
        async def all_of_them() -> None:
            for one in some:
                await work(one)

        return await spent(clock, all_of_them)

    async def terms(question: str) -> None:
        await engine.masters.everywhere("RG.TRIGGER", "Terms", corpus, question)

    await one_by_one(terms, asked[:50])
    of_terms = await one_by_one(terms, asked)
    both = await one_by_one(lambda question: engine.rank(question, corpus, 5), asked)
    of_plain = await one_by_one(lambda question: engine.masters.by_key(f"none:{question}", "GET"), asked)
    message, a_terms, plain = of_terms.engine / MESSAGES, of_terms.shards / MESSAGES, of_plain.shards / MESSAGES
    a_rank = both.shards / MESSAGES - a_terms

    async def read(k: int, sure: float, some: Sequence[str]) -> tuple[Spent, int, list[int]]:
        own = await Engine.connect(engine.settings.model_copy(update={"sure": sure, "k": k}))
        rows = list[int]()

        async def ask(question: str) -> None:
            rows.append(rows_of(await own.ask(question)))

        try:
            with counted(own) as sent:
                used = await one_by_one(ask, some)
        finally:
            await own.close()
        return used, sum(sent.values()), rows

    await engine.ask(f"{questions[0]} Or?")
    one, five = (await read(1, 1.0, questions))[0], (await read(5, 1.0, questions))[0]
    usual, sent, rows = await read(engine.settings.k, engine.settings.sure, others)
    each = len(questions)
    row = (five.shards - one.shards) / each / 3  # one of the five had been read, and is remembered
    get = max(one.shards / each - a_terms - a_rank - row - 2 * plain, 0.0)
    question = max((usual.engine - sent * message) / len(others), 0.0)
    return Costs(question, message, a_terms, a_rank, get, row, plain, rows)


def rows_of(answer: Answer) -> int:
    return sum(use.passages for use in answer.shards)


async def checked(engine: Engine, clock: Clock, questions: Sequence[str], shards: int) -> Checked:
    askers = 2 * shards
    left, rows = iter(questions), list[int]()

    async def one() -> None:
        for question in left:
            rows.append(rows_of(await engine.ask(question)))

    async def all_of_them() -> None:
        await asyncio.gather(*(one() for _ in range(askers)))

    for question in questions[: 3 * shards]:
        await engine.ask(f"{question} Or?")  # each shard has read something
    with counted(engine) as sent:
        used = await spent(clock, all_of_them)
    count, processor = len(questions), used.engine + used.shards
    cores, messages = processor / used.wall, sum(sent.values()) / count
    return Checked(shards, askers, processor / count, messages, count / used.wall, cores, rows)


def measure(passages: int, questions: int, sizes: Sequence[int]) -> dict[str, Any] | None:
    """Costs from one shard, and a real cluster of each size; None where SQuAD is not here."""
    if not SQUAD.is_file():
        return None
    found = squad.read(SQUAD)
    costs: Costs | None = None
    clusters = list[Checked]()
    for shards in sorted({1, *sizes}):
        shelf = found.paragraphs[: passages * shards]
        known = {one.id for one in shelf}
        every = [one.text for one in found.questions if one.document in known]
        asked = [every[n * len(every) // (3 * questions)] for n in range(3 * questions)]
        own, real = _measured(shards, shelf, asked)
        costs = own or costs
        clusters.append(real)
    assert costs is not None
    return {"machine": machine.label(), "costs": asdict(costs), "checked": [asdict(one) for one in clusters]}


def _measured(shards: int, shelf: Sequence[squad.Paragraph], asked: Sequence[str]) -> tuple[Costs | None, Checked]:
    async def on(cluster: LocalCluster) -> tuple[Costs | None, Checked]:
        settings = settings_of(cluster).model_copy(update={"term_megabytes": 0})
        engine, clock = await Engine.connect(settings), Clock(cluster)
        try:
            await fill(engine, shelf)
            own = await costs_of(engine, clock, asked[::3], asked[1::3]) if shards == 1 else None
            return own, await checked(engine, clock, asked[2::3], shards)
        finally:
            await engine.close()

    with temporary_cluster(shards) as cluster:
        return asyncio.run(on(cluster))
