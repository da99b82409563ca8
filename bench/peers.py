"""A new question here and with the peers' readers: the same weights, the same five passages, as many threads, one run.

    python bench/peers.py [--squad FILE] [--paragraphs 2000] [--limit 60] [--threads 2]

The peers (transformers 4.57's pipeline, Haystack 2's ExtractiveReader) read passages that are handed to them, in
float32 on torch. shardqa's time is a whole question's: found, ranked and read by a shard, over Redis, nothing cached.
They take turns, block by block. Then ASKERS ask shardqa side by side; a peer has all threads at work with one question,
so its rate is that of its mean time, whoever waits. Skips where the peers can't be installed.
"""

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from common import ROOT, SHARED, settings_of, temporary_cluster

from shardqa.config import Settings
from shardqa.engine import Engine
from shardqa.machine import label
from shardqa.models import shipped
from shardqa.schema import Document
from shardqa_toolchain import squad
from shardqa_toolchain.conversion.checked import Check
from shardqa_toolchain.conversion.dequantize import dequantize

sys.path.append(str(ROOT))  # a bench is run as a file
from tests.environments import NotInstallable, made

PACKAGES = ("haystack-ai==2.31.0", "transformers==4.57.6", "accelerate==1.12.0")
ORACLE = Path(__file__).with_name("peers_oracle.py")
BLOCKS, ASKERS = 3, 12
K = 5
# By the score from which no more is read.
FORMS = {"shardqa": Settings.model_fields["sure"].default, "shardqa, all five read": 1.0}


def peers_python() -> Path:
    """The interpreter that has the peers; exits where they can't be installed. torch is this environment's."""
    try:
        return made("peers", PACKAGES, ours="needed")
    except NotInstallable as fault:
        typer.echo(f"  skipped: {fault}")
        raise typer.Exit from None


async def fill(settings: Settings, paragraphs: list[squad.Paragraph]) -> None:
    async with await Engine.connect(settings) as engine:
        for one in paragraphs:
            await engine.documents.put(Document(id=one.id, title=one.title.replace("_", " "), text=one.text))


async def passages_of(settings: Settings, questions: list[str]) -> list[dict[str, Any]]:
    async with await Engine.connect(settings) as engine:
        found = [await engine.search(question, limit=K) for question in questions]
    return [
        {"question": question, "passages": [passage.text for passage in one.passages]}
        for question, one in zip(questions, found, strict=True)
    ]


async def ours(settings: Settings, sure: float, questions: list[str]) -> list[float]:
    """Seconds of each."""
    seconds = []
    async with await Engine.connect(settings.model_copy(update={"sure": sure, "cache_megabytes": 0})) as engine:
        await engine.ask(questions[-1], k=K, fresh=True)
        for question in questions:
            began = time.perf_counter()
            await engine.ask(question, k=K, fresh=True)
            seconds.append(time.perf_counter() - began)
    return seconds


async def rate(settings: Settings, questions: list[str]) -> float:
    """Questions a second of ASKERS side by side."""
    left = iter(questions)
    async with await Engine.connect(settings.model_copy(update={"cache_megabytes": 0})) as engine:

        async def asker() -> None:
            for question in left:
                await engine.ask(question, k=K, fresh=True)

        began = time.perf_counter()
        await asyncio.gather(*(asker() for _ in range(ASKERS)))
        return len(questions) / (time.perf_counter() - began)


def theirs(python: Path, checkpoint: Path, tasks: list[dict[str, Any]], threads: int) -> dict[str, list[float]]:
    with tempfile.TemporaryDirectory() as folder:
        questions, out = Path(folder, "questions.json"), Path(folder, "out.json")
        questions.write_text(json.dumps(tasks))
        environment = {**os.environ, "OMP_NUM_THREADS": str(threads), "MKL_NUM_THREADS": str(threads)}
        words = [str(python), str(ORACLE), str(checkpoint), str(questions), str(out)]
        done = subprocess.run(words, check=False, capture_output=True, text=True, env=environment)
        assert done.returncode == 0, done.stderr
        results = json.loads(out.read_text())
    return {name: [seconds for seconds, _ in rows] for name, rows in results.items()}


def main(
    file: Annotated[Path, typer.Option("--squad", help="SQuAD file.")] = SHARED / "data" / "squad" / "dev-v1.1.json.gz",
    paragraphs: Annotated[int, typer.Option(help="Documents.", min=K)] = 2000,
    limit: Annotated[int, typer.Option(help="Questions.", min=BLOCKS)] = 60,
    threads: Annotated[int, typer.Option(help="Threads of each.", min=1)] = len(os.sched_getaffinity(0)),
) -> None:
    """Print the median of each, and how many times as fast shardqa is."""
    print(f"peers, {label()}")
    if not file.is_file():
        print(f"  skipped: {file} is not here")
        raise typer.Exit
    found, python = squad.read(file), peers_python()
    shelf = list(found.paragraphs[:paragraphs])
    known = {one.id for one in shelf}
    every = [one.text for one in found.questions if one.document in known]
    questions = [every[n * len(every) // limit] for n in range(limit)]
    seconds: dict[str, list[float]] = {}
    with temporary_cluster(1, threads=threads) as cluster, tempfile.TemporaryDirectory() as folder:
        settings, checkpoint = settings_of(cluster), Path(folder, "checkpoint")
        dequantize(shipped.folder(), checkpoint, Check(limit=4))
        asyncio.run(fill(settings, shelf))
        given = asyncio.run(passages_of(settings, questions))
        for block in range(BLOCKS):
            took = theirs(python, checkpoint, given[block::BLOCKS], threads)
            for name, sure in FORMS.items():
                took[name] = asyncio.run(ours(settings, sure, questions[block::BLOCKS]))
            for name, times in took.items():
                seconds.setdefault(name, []).extend(times)
        ours_a_second = asyncio.run(rate(settings, questions))
    _print(seconds, limit, len(shelf), threads)
    print(f"  {ASKERS} askers: shardqa {ours_a_second:.1f} questions a second")
    for name in seconds.keys() - FORMS:
        theirs_a_second = 1 / float(np.mean(seconds[name]))
        print(f"  {name:28} {theirs_a_second:8.1f} a second, shardqa {ours_a_second / theirs_a_second:.1f}x")


def _print(seconds: dict[str, list[float]], questions: int, documents: int, threads: int) -> None:
    print(f"  {questions} new questions, {documents} documents, {K} passages each, {threads} threads; medians")
    best = float(np.median(seconds["shardqa"]))
    for name, times in seconds.items():
        median = float(np.median(times))
        print(f"  {name:28} {1e3 * median:8.1f} ms {median / best:6.1f}x the time of shardqa")


if __name__ == "__main__":
    typer.run(main)
