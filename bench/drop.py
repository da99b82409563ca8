"""Dropping a corpus while others ask: PING and questions before and during the drop, in one run.

    DOCUMENTS=100000 python bench/drop.py

Documents of one sentence, three shards, another corpus that is asked all the time. PING goes to every shard.
"""

import asyncio
import os
from collections.abc import Coroutine
from itertools import count
from time import perf_counter
from typing import Any

from common import percentiles, settings_of, temporary_cluster
from redis.asyncio import Redis

from shardqa import machine
from shardqa.cluster.local import LocalCluster
from shardqa.engine import Engine
from shardqa.schema import Document

DOCUMENTS = int(os.environ.get("DOCUMENTS", "100000"))
KEPT = 200  # documents of the corpus that is asked
AT_ONCE = 64
WARM_SECONDS, QUIET_SECONDS = 2.0, 10.0  # before the drop
PAUSE = 0.002  # seconds between a client's calls: one that only ever calls would measure itself


async def main(cluster: LocalCluster) -> None:
    async with await Engine.connect(settings_of(cluster, "kept")) as engine:
        await fill(engine, "kept", KEPT)
        start = perf_counter()
        await fill(engine, "old", DOCUMENTS)
        print(f"{DOCUMENTS:,} documents of one sentence put in {perf_counter() - start:.0f} s; {machine.label()}")
        await beside(engine, cluster, asyncio.sleep(WARM_SECONDS))
        quiet = await beside(engine, cluster, asyncio.sleep(QUIET_SECONDS))
        during = await beside(engine, cluster, drop(engine))
    for what in ("PING", "question"):
        before, then = quiet[what], during[what]
        print(f"{what:8}  before  {percentiles(before)}  longest {max(before) * 1e3:.1f} ms  ({len(before):,})")
        print(f"{what:8}  during  {percentiles(then)}  longest {max(then) * 1e3:.1f} ms  ({len(then):,})")


async def drop(engine: Engine) -> None:
    """Returns when the last key is gone."""
    start = perf_counter()
    begun = await engine.catalogue.drop("old")
    print(f"the drop of {begun.documents:,} documents replied after {(perf_counter() - start) * 1e3:.0f} ms", end=", ")
    async for _ in engine.catalogue.dropping("old"):
        pass
    print(f"the last was removed after {perf_counter() - start:.1f} s")


async def beside(engine: Engine, cluster: LocalCluster, work: Coroutine[Any, Any, None]) -> dict[str, list[float]]:
    """Seconds of each PING and each new question while `work` runs."""
    times: dict[str, list[float]] = {"PING": [], "question": []}
    running = asyncio.create_task(work)

    async def pings(port: int) -> None:
        async with Redis(port=port) as client:
            while not running.done():
                start = perf_counter()
                await client.ping()
                times["PING"].append(perf_counter() - start)
                await asyncio.sleep(PAUSE)

    async def questions() -> None:
        for number in count():
            if running.done():
                return
            start = perf_counter()
            await engine.ask(f"How long is boat {number % KEPT}?", fresh=True)
            times["question"].append(perf_counter() - start)
            await asyncio.sleep(PAUSE)

    await asyncio.gather(running, questions(), *(pings(node.port) for node in cluster.state.nodes))
    return times


async def fill(engine: Engine, corpus: str, documents: int) -> None:
    numbers = iter(range(documents))

    async def put() -> None:
        for number in numbers:
            text = f"Boat {number} of the harbour is {number % 97} metres long."
            await engine.documents.put(Document(id=f"boat/{number}", corpus=corpus, text=text))

    await asyncio.gather(*(put() for _ in range(AT_ONCE)))


if __name__ == "__main__":
    with temporary_cluster(3) as found:
        asyncio.run(main(found))
