"""Passages' states ahead of questions: `python bench/states_ahead.py [--cut 2] [--copies 20] [--questions 150]`.

A shard with a split reader, made of the shipped one, untrained, as bench/split.py makes it. Two figures in one run:
rows that the background encodes a second against what the lower network alone does, in this process; and times of
questions that come at random while it encodes, against the same questions while it has nothing to do. These read
passages of another corpus, whose states are kept.
"""

from __future__ import annotations

import asyncio
import os
import random
import re
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np
import typer
from common import ROOT, percentiles, settings_of, temporary_cluster
from split import make, name_of

from shardqa.cluster import node
from shardqa.cluster.local import LocalCluster
from shardqa.engine import Engine
from shardqa.loader import push
from shardqa.loader.files import SourceFiles
from shardqa.loader.ingest import ingest
from shardqa.machine import label
from shardqa.models import shipped, squad
from shardqa.models.reader import passage_part
from shardqa.models.split import LOWER_FILE, STATES, open_network
from shardqa.models.tokenizer import Tokenizer
from shardqa.module.worker.ai.background import NICENESS
from shardqa.schema import Document

if TYPE_CHECKING:
    from numpy.typing import NDArray

KEPT = 1 << 30  # bytes
AMONG = "more"  # the corpus that is encoded
LOOK = 0.02  # seconds
WARM_UP, RAW = 20, 150  # rows of the network alone


class Figures:
    """What INFO says of states."""

    def __init__(self, cluster: LocalCluster) -> None:
        self._port = cluster.state.port

    def now(self, *names: str) -> list[int]:
        with node.connected(self._port) as client:
            info = client.info("shardqa")
        return [int(info.get(f"shardqa_states_{name}", 0)) for name in names]

    def at_change(self) -> tuple[float, int]:
        """When INFO's count of encoded passages changes, and to what: the worker tells it once a second."""
        (before,) = self.now("encoded")
        while (now := self.now("encoded")[0]) == before:
            time.sleep(LOOK)
        return time.perf_counter(), now

    def rate(self, seconds: float) -> float:
        """Rows a second of the background."""
        began, first = self.at_change()
        while True:
            ended, last = self.at_change()
            if ended - began >= seconds:
                return (last - first) / (ended - began)

    def until_done(self) -> None:
        while self.now("to_do") != [0]:
            time.sleep(LOOK)


def copies(count: int) -> list[Document]:
    """Documents of `seeds/` with another word in each sentence, so that no passage is another's."""
    files = sorted((ROOT / "seeds" / "documents").glob("*.md"))
    return [
        Document(corpus=AMONG, id=f"{path.stem}-{n}", text=re.sub(r"\. ", f" {n}. ", path.read_text()))
        for n in range(count)
        for path in files
    ]


def raw_rate(reader: Path, texts: Sequence[str]) -> float:
    """Rows a second of the lower network alone, a passage at a time, on one thread as nice as the background's."""
    os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICENESS)
    tokenizer, lower = Tokenizer.load(shipped.folder()), open_network(reader / LOWER_FILE, 1)
    parts = [passage_part(tokenizer.passage(text).ids)[None] for text in texts]

    def run(some: Sequence[NDArray[np.int64]]) -> float:
        began = time.perf_counter()
        for part in some:
            ones = np.ones_like(part)
            lower.run([STATES], {"input_ids": part, "attention_mask": ones, "token_type_ids": ones})
        return time.perf_counter() - began

    run(parts[:WARM_UP])
    return len(parts[WARM_UP:]) / run(parts[WARM_UP:])


async def alone(work: Callable[[], float]) -> float:
    """In a thread that ends with it, so that its niceness does."""
    with ThreadPoolExecutor(1) as pool:
        return await asyncio.get_running_loop().run_in_executor(pool, work)


async def asked(engine: Engine, texts: Sequence[str], rate: float) -> list[float]:
    """Seconds of each question; they come at random, so many a second, whether or not the last is answered."""
    dice = random.Random(0)

    async def ask(text: str) -> float:
        began = time.perf_counter()
        await engine.ask(text, fresh=True)
        return time.perf_counter() - began

    asking = []
    for text in texts:
        asking.append(asyncio.create_task(ask(text)))
        await asyncio.sleep(dice.expovariate(rate))
    return list(await asyncio.gather(*asking))


def passages_of(cluster: LocalCluster, count: int) -> list[str]:
    with node.connected(cluster.state.port) as client:
        names = sorted(client.scan_iter(match=f"passage:{AMONG}:*", count=1_000))[::7][:count]
        return [str(client.hget(name, "text")) for name in names]


async def measure(cluster: LocalCluster, reader: Path, texts: Sequence[str], count: int, rate: float) -> None:
    figures, loop = Figures(cluster), asyncio.get_running_loop()
    settings = settings_of(cluster).model_copy(update={"sure": 1.0, "model": reader.name})
    async with await Engine.connect(settings) as engine:
        await ingest(engine, SourceFiles([ROOT / "seeds" / "documents"]), "bench")
        await push.push(engine, reader, reader.name)
        await loop.run_in_executor(None, figures.until_done)
        await asked(engine, texts, rate)
        before = await asked(engine, texts, rate)
        for document in copies(count):
            await engine.put(document)
        some = passages_of(cluster, WARM_UP + RAW)
        at_first = figures.now("encoded", "to_do")
        meanwhile = await asked(engine, texts, rate)
        at_last = figures.now("encoded", "to_do")
        background = await loop.run_in_executor(None, figures.rate, 6.0)
        print(
            f"states ahead, {label()}; one shard, one thread, {reader.name}, {len(texts)} questions, {rate:g} a second"
        )
        print(f"  questions while nothing is to do {percentiles(before)}")
        print(f"  questions while it encodes       {percentiles(meanwhile)}", end="  ")
        print(f"p99 {np.percentile(meanwhile, 99) / np.percentile(before, 99):.2f} times, ", end="")
        print(f"{at_last[0] - at_first[0]:,} rows encoded meanwhile, {at_last[1]:,} left")
        await loop.run_in_executor(None, figures.until_done)
        after = await asked(engine, texts, rate)
        print(f"  questions when it is done        {percentiles(after)}")
        raw = await alone(partial(raw_rate, reader, some))
    print(f"  background {background:.1f} rows/s, the lower network alone {raw:.1f}: {background / raw:.0%}")


def main(
    cut: Annotated[int, typer.Option(help="Layers apart.", min=1)] = 2,
    copied: Annotated[int, typer.Option("--copies", help="Of each document of seeds/, to be encoded.", min=1)] = 20,
    questions: Annotated[int, typer.Option(help="Of seeds/.", min=1)] = 150,
    rate: Annotated[float, typer.Option(help="Questions a second.", min=0.1)] = 3.0,
) -> None:
    texts = [one.text for one in squad.read(ROOT / "seeds" / "questions.jsonl").questions][:questions]
    with tempfile.TemporaryDirectory(prefix="shardqa-bench-") as folder:
        reader = make(Path(folder), [cut])[name_of(cut)]
        with temporary_cluster(1, module_arguments=("STATES_BYTES", str(KEPT))) as cluster:
            asyncio.run(measure(cluster, reader, texts, copied, rate))


if __name__ == "__main__":
    typer.run(main)
