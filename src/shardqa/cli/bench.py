"""`shardqa bench ask`: how long a question takes, computed and cached, one at a time and side by side."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import partial
from itertools import cycle, islice
from math import ceil
from pathlib import Path
from time import perf_counter
from typing import Annotated

import typer

from shardqa.cli.connection import with_engine
from shardqa.cli.demo import shipped_seeds
from shardqa.cli.eval import spread
from shardqa.cli.faults import WrongSetting
from shardqa.cli.options import CorpusOption, JsonOption, Target, on_cluster
from shardqa.cli.output import print_json, print_table
from shardqa.engine import Engine
from shardqa.errors import BadData
from shardqa.loader.tasks import run_all
from shardqa.models import squad

app = typer.Typer(help="Measure times.", no_args_is_help=True)
KINDS = ("computed", "redis", "process")  # where the answer comes from


@dataclass(frozen=True, slots=True)
class BenchRow:
    kind: str
    concurrency: int
    questions: int
    p50_ms: float
    p90_ms: float
    p99_ms: float
    per_second: float


@app.command("ask")
@on_cluster
def bench_ask(
    target: Target,
    questions: Annotated[
        Path | None,
        typer.Option(
            "--questions", help="File of questions: jsonl or SQuAD; without it, the shipped ones.", show_default=False
        ),
    ] = None,
    corpus: CorpusOption = None,
    requests: Annotated[int, typer.Option("--requests", min=1, help="Questions for each row.")] = 100,
    concurrency: Annotated[str, typer.Option("--concurrency", help="Numbers of questions in flight.")] = "1,4,16",
    k: Annotated[int | None, typer.Option("--k", help="Passages to read.", show_default=False)] = None,
    as_json: JsonOption = False,
) -> None:
    """Latency percentiles and throughput: computed afresh, from Redis, from the process.

    Example: shardqa bench ask --requests 200 --concurrency 1,8
    """
    levels = _levels(concurrency)
    questions = shipped_seeds() / "questions.jsonl" if questions is None else questions
    try:
        texts = [q.text for q in spread(squad.read(questions).questions, requests)]
    except OSError as error:
        raise BadData(f"{questions} can't be read: {error.strerror}; name one with --questions") from None
    if not texts:
        raise BadData(f"{questions} holds no questions")
    rows: list[BenchRow] = []
    for kind in KINDS:
        settings = target.settings(corpus=corpus, k=k, timeout=60.0, cache_megabytes=64 if kind == "process" else 0)
        rows += with_engine(settings, partial(_rows, kind=kind, texts=texts, requests=requests, levels=levels))
    if as_json:
        print_json([asdict(row) for row in rows])
    else:
        print_table(list(asdict(rows[0])), [list(asdict(row).values()) for row in rows], "asking")


def _levels(text: str) -> list[int]:
    try:
        levels = [int(part) for part in text.split(",")]
    except ValueError:
        levels = []
    if not levels or not all(1 <= level <= 256 for level in levels):
        raise WrongSetting(f"--concurrency {text!r} is not a list of numbers from 1 to 256, like 1,4,16")
    return levels


async def _rows(
    engine: Engine, kind: str, texts: Sequence[str], requests: int, levels: Sequence[int]
) -> list[BenchRow]:
    for text in texts if kind != "computed" else texts[:3]:
        await engine.ask(text)  # warms connections; for the cached kinds, the caches
    return [await _row(engine, kind, list(islice(cycle(texts), requests)), level) for level in levels]


async def _row(engine: Engine, kind: str, texts: Sequence[str], concurrency: int) -> BenchRow:
    left = iter(texts)
    times: list[float] = []

    async def take() -> None:
        for text in left:
            start = perf_counter()
            await engine.ask(text, fresh=kind == "computed")
            times.append(1000 * (perf_counter() - start))

    start = perf_counter()
    await run_all(take() for _ in range(concurrency))
    seconds = perf_counter() - start
    p50, p90, p99 = (round(percentile(times, share), 2) for share in (0.5, 0.9, 0.99))
    return BenchRow(kind, concurrency, len(times), p50, p90, p99, round(len(times) / seconds, 1))


def percentile(values: Sequence[float], share: float) -> float:
    """The least value that at least `share` of them do not exceed (nearest rank)."""
    assert values, "a percentile of nothing"
    ordered = sorted(values)
    return ordered[max(0, ceil(share * len(ordered)) - 1)]
