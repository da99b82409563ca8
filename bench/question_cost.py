"""Processor time of a new question by process and phase: `python bench/question_cost.py`.

Questions of `seeds/`, one after another, each new. Each phase is what its round adds: Terms alone, Terms and Rank (with
bridges), the whole question. The network is what this process needs for the same rows, so the worker's `answer` is
without it; what the processes use when nobody asks is taken off. Times are the kernel's, of processes and of Redis'
main threads: another load on the machine makes them longer, but is not counted.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
import uvloop
from common import ROOT, settings_of, temporary_cluster, worker_pid
from numpy.typing import NDArray

from shardqa.cluster import node
from shardqa.engine import Engine
from shardqa.files.folders import SourceFiles
from shardqa.loader.ingest import ingest
from shardqa.machine import label
from shardqa.models import reader, shipped
from shardqa.models.session import ReaderSession
from shardqa.models.tokenizer import Tokenizer
from shardqa.schema import Step
from shardqa_toolchain import squad

PROCESSES = ("engine", "Redis", "worker")
WARMING = 20  # questions before those that count
IDLE = 5.0  # seconds
SCHEDULED = 2  # the kind of clock (clock_getcpuclockid)


def of_process(pid: int) -> float:
    """Seconds of processor that a process has used, all threads."""
    return time.clock_gettime((~pid << 3) | SCHEDULED)


def of_main_thread(pid: int) -> float:
    return int(Path(f"/proc/{pid}/task/{pid}/schedstat").read_text().split()[0]) / 1e9


@dataclass(frozen=True, slots=True)
class Nodes:
    servers: list[int]
    workers: list[int]

    @classmethod
    def of(cls, addresses: Sequence[tuple[str, int]]) -> "Nodes":
        servers = []
        for _, port in addresses:
            with node.connected(port) as client:
                servers.append(int(client.info("server")["process_id"]))
        return cls(servers, [worker_pid(port) for _, port in addresses])

    def used(self) -> NDArray[np.float64]:
        """Seconds of each of PROCESSES."""
        redis, workers = sum(map(of_main_thread, self.servers)), sum(map(of_process, self.workers))
        return np.array([time.process_time(), redis, workers])


async def idle(nodes: Nodes) -> NDArray[np.float64]:
    """Seconds of processor a second."""
    before, began = nodes.used(), time.perf_counter()
    await asyncio.sleep(IDLE)
    return (nodes.used() - before) / (time.perf_counter() - began)


async def spent(
    nodes: Nodes, texts: Sequence[str], work: Callable[[str], Awaitable[object]], base: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Milliseconds of a question by process; the first questions are not counted."""
    for text in texts[:WARMING]:
        await work(text)
    before, began = nodes.used(), time.perf_counter()
    for text in texts[WARMING:]:
        await work(text)
    used = nodes.used() - before - base * (time.perf_counter() - began)
    return 1e3 * used / (len(texts) - WARMING)


async def network(engine: Engine, texts: Sequence[str], read: Sequence[int], k: int) -> tuple[float, int]:
    """Milliseconds of a question for the rows that were read of it, each by itself; and how many rows."""
    tokenizer, session = Tokenizer.load(shipped.folder()), ReaderSession(shipped.folder(), 1)
    seconds, rows = 0.0, 0
    for text, count in zip(texts, read, strict=True):
        found = await engine.search(text, limit=k)
        question = tokenizer.question(found.question)
        for passage in found.passages[:count]:
            row = reader.join(question, tokenizer.passage(passage.text).ids)
            began = time.thread_time()
            session.read([row])
            seconds += time.thread_time() - began
            rows += 1
    return 1e3 * seconds / len(texts), rows


async def measure(engine: Engine, nodes: Nodes, texts: Sequence[str]) -> None:
    ranking, k = engine.ranking, engine.settings.k
    read, milliseconds = list[int](), list[float]()

    async def rank(text: str) -> None:
        await ranking.rank(engine.question(text), k)

    async def ask(text: str) -> None:
        steps = list[Step]()
        answer = await engine.ask(text, steps.append)
        read.append(steps[-1].passages or 0)
        milliseconds.append(answer.timing.total)

    base = await idle(nodes)
    terms = await spent(nodes, texts, lambda text: ranking.terms(engine.question(text)), base)
    both = await spent(nodes, texts, rank, base)
    whole = await spent(nodes, texts, ask, base)
    texts, read = texts[WARMING:], read[WARMING:]
    net, rows = await network(engine, texts, read, k)
    print(f"  {'ms of processor':18}" + "".join(f"{name:>10}" for name in (*PROCESSES, "all")))
    rest = whole - np.array([0.0, 0.0, net])
    parts = {"terms": terms, "rank": both - terms, "answer": rest - both, "all but network": rest}
    for name, part in parts.items():
        print(f"  {name:18}" + "".join(f"{ms:10.2f}" for ms in (*part, part.sum())))
    print(f"  {'network':18}{net:40.2f}   {rows / len(texts):.2f} rows a question")
    print(f"  a question took {np.median(milliseconds[WARMING:]):.1f} ms (p50)")


def main(
    questions: Annotated[int, typer.Option(help="Questions of seeds/ at most.", min=2 * WARMING)] = 247,
    shards: Annotated[int, typer.Option(help="Shards, with one thread each.", min=1)] = 3,
) -> None:
    """Print a table."""
    texts = [one.text for one in squad.read(ROOT / "seeds" / "questions.jsonl").questions]
    print(f"cost of a new question, {label()}; {len(texts[:questions])} questions of seeds/, {shards} shards")
    with temporary_cluster(shards) as cluster:

        async def work() -> None:
            async with await Engine.connect(settings_of(cluster)) as engine:
                await ingest(engine, SourceFiles([ROOT / "seeds" / "documents"]), engine.settings.corpus)
                await measure(engine, Nodes.of(cluster.addresses), texts[:questions])

        uvloop.run(work())  # as the API does


if __name__ == "__main__":
    typer.run(main)
