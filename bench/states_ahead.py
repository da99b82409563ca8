"""Passages' states ahead of questions: `python bench/states_ahead.py [--cut 2] [--copies 12] [--questions 100]`.

A shard with a split reader, made of the shipped one, untrained, as bench/split.py makes it. Three figures in one run:
times of questions that come at random while it encodes, against the same questions while it has nothing to do, all of
passages whose states are kept; rows that a new worker encodes a second against what the lower network alone does, in
this process; and how long a new worker takes until all states are there, with none stored and with all.
"""

from __future__ import annotations

import asyncio
import os
import random
import re
import signal
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
from common import ROOT, percentiles, settings_of, shown, temporary_cluster, worker_pid
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
TOLD_EVERY = 1.0  # seconds between two times that a worker tells INFO
WARM_UP, RAW = 20, 150  # rows of the network alone


class Figures:
    """What INFO says of states."""

    def __init__(self, cluster: LocalCluster) -> None:
        self._port = cluster.state.port

    def now(self, *names: str) -> list[int]:
        with node.connected(self._port) as client:
            info = client.info("shardqa")
        return [int(info.get(f"shardqa_states_{name}", 0)) for name in names]

    def until_done(self) -> None:
        while self.now("kept") == [0] or self.now("to_do") != [0]:
            time.sleep(LOOK)

    def begun_anew(self) -> tuple[float, float]:
        """(seconds until another worker has as many states, rows a second that it encoded or read)."""
        (wanted,), before = self.now("kept"), self.now("hits", "encoded", "read_back")
        began, seen = time.perf_counter(), list[tuple[float, int]]()
        os.kill(worker_pid(self._port), signal.SIGKILL)
        while not seen or seen[-1][1] < wanted:
            time.sleep(LOOK)
            _, encoded, read_back = now = self.now("hits", "encoded", "read_back")
            if now != before:  # INFO shows what the last one told until the new one does, once a second
                before = now
                seen.append((time.perf_counter(), encoded + read_back))
        (since, few), (until, many) = seen[0], seen[max(len(seen) - 2, 0)]
        return time.perf_counter() - began, (many - few) / (until - since) if until > since else float("nan")


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


async def asked(engine: Engine, texts: Sequence[str], pause: float) -> list[float]:
    """Seconds of each question, one after another, with random pauses between them."""
    dice, seconds = random.Random(0), list[float]()
    for text in texts:
        await asyncio.sleep(dice.expovariate(1 / pause))
        began = time.perf_counter()
        await engine.ask(text, fresh=True)
        seconds.append(time.perf_counter() - began)
    return seconds


def passages_of(cluster: LocalCluster, count: int) -> list[str]:
    with node.connected(cluster.state.port) as client:
        names = sorted(client.scan_iter(match=f"passage:{AMONG}:*", count=1_000))[::7][:count]
        return [str(client.hget(name, "text")) for name in names]


async def filled(engine: Engine, reader: Path, figures: Figures) -> None:
    await ingest(engine, SourceFiles([ROOT / "seeds" / "documents"]), "bench")
    await push.push(engine, reader, reader.name)
    await asyncio.to_thread(figures.until_done)


async def measure(cluster: LocalCluster, reader: Path, texts: Sequence[str], count: int, pause: float) -> None:
    figures = Figures(cluster)
    settings = settings_of(cluster).model_copy(update={"sure": 1.0, "model": reader.name})
    async with await Engine.connect(settings) as engine:
        await filled(engine, reader, figures)
        print(f"states ahead, {label()}; one shard, one thread, {reader.name}", flush=True)
        await asked(engine, texts, pause)
        before = await asked(engine, texts, pause)
        print(f"  {len(texts)} questions, {pause:g} s apart, nothing to do {percentiles(before)}", flush=True)
        for document in copies(count):
            await engine.put(document)
        (at_first,) = figures.now("encoded")
        meanwhile = await asked(engine, texts, pause)
        at_last, left = figures.now("encoded", "to_do")
        print(f"  the same while it encodes {percentiles(meanwhile)}", end="  ")
        print(f"p99 {np.percentile(meanwhile, 99) / np.percentile(before, 99):.2f} times, ", end="")
        print(f"{at_last - at_first:,} rows encoded meanwhile, {left:,} left", flush=True)
        await asyncio.to_thread(figures.until_done)
        some = passages_of(cluster, WARM_UP + RAW)
        raw = [await alone(partial(raw_rate, reader, some))]
        seconds, background = await asyncio.to_thread(figures.begun_anew)
        raw.append(await alone(partial(raw_rate, reader, some)))
        print(
            f"  a new worker, none stored: {seconds:.1f} s, {background:.1f} rows/s; the lower network alone", end=" "
        )
        print(f"{shown(raw)} before and after: {background / np.mean(raw):.0%}", flush=True)


async def measure_stored(cluster: LocalCluster, reader: Path, count: int) -> None:
    figures = Figures(cluster)
    async with await Engine.connect(settings_of(cluster)) as engine:
        await filled(engine, reader, figures)
        for document in copies(count):
            await engine.put(document)
        await asyncio.sleep(2 * TOLD_EVERY)
        await asyncio.to_thread(figures.until_done)
        seconds, rate = await asyncio.to_thread(figures.begun_anew)
        encoded, read_back = figures.now("encoded", "read_back")
        stored = figures.now("stored_bytes")[0] / 1e6
        print(
            f"  a new worker, all stored: {seconds:.1f} s, {rate:.1f} rows/s, {read_back:,} read, {encoded:,} encoded,",
            end=" ",
        )
        print(f"{stored:.0f} MB in keys", flush=True)


def main(
    cut: Annotated[int, typer.Option(help="Layers apart.", min=1)] = 2,
    copied: Annotated[int, typer.Option("--copies", help="Of each document of seeds/, to be encoded.", min=1)] = 12,
    questions: Annotated[int, typer.Option(help="Of seeds/.", min=1)] = 100,
    pause: Annotated[float, typer.Option(help="Mean seconds between two questions.", min=0.001)] = 0.2,
    reader: Annotated[Path | None, typer.Option(help="A split reader, in place of one made here.")] = None,
) -> None:
    texts = [one.text for one in squad.read(ROOT / "seeds" / "questions.jsonl").questions][:questions]
    with tempfile.TemporaryDirectory(prefix="shardqa-bench-") as folder:
        reader = reader or make(Path(folder), [cut])[name_of(cut)]
        with temporary_cluster(1, module_arguments=("STATES_BYTES", str(KEPT))) as cluster:
            asyncio.run(measure(cluster, reader, texts, copied, pause))
        arguments = ("STATES_BYTES", str(KEPT), "STORED_STATES", str(KEPT))
        with temporary_cluster(1, module_arguments=arguments) as cluster:
            asyncio.run(measure_stored(cluster, reader, copied))


if __name__ == "__main__":
    typer.run(main)
