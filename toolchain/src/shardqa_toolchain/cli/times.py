"""`shardqa-models eval times`: how long a question takes, computed and cached, one at a time and side by side."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import cycle, islice
from math import ceil
from pathlib import Path
from time import perf_counter
from typing import Annotated

import numpy as np
import typer

from shardqa.cli.connection import with_engine
from shardqa.cli.demo import shipped_seeds
from shardqa.cli.faults import WrongSetting
from shardqa.cli.options import CorpusOption, JsonOption, KOption, Target, on_cluster
from shardqa.cli.output import print_records, say
from shardqa.engine import Engine
from shardqa.loader.tasks import run_all
from shardqa.machine import label
from shardqa.models import reader, shipped
from shardqa.models.session import ReaderSession
from shardqa_toolchain.cli.eval import read_questions, spread

QuestionsOption = Annotated[
    Path | None,
    typer.Option(
        "--questions", help="File of questions: jsonl or SQuAD; without it, the shipped ones.", show_default=False
    ),
]
MOST_AT_ONCE = 256  # questions in flight
ROW_TOKENS, ROW_RUNS = 128, 40
SOME_PIECE = 2000  # any word piece: what the row says does not matter
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
    row_times: float  # the p50 in times of a row
    per_row_second: float  # questions in the time of a row


@on_cluster
def times(
    target: Target,
    questions: QuestionsOption = None,
    corpus: CorpusOption = None,
    requests: Annotated[int, typer.Option("--requests", min=1, help="Questions for each row.")] = 100,
    concurrency: Annotated[str, typer.Option("--concurrency", help="Numbers of questions in flight.")] = "1,4,16",
    k: KOption = None,
    as_json: JsonOption = False,
) -> None:
    """Latency percentiles and throughput: computed afresh, from Redis, from the process.

    A row is one run of the shipped reader, 1 x 128 tokens on one thread: by its time machines can be compared.

    Example: shardqa-models eval times --requests 200 --concurrency 1,8
    """
    levels = [int(level) for level in numbers(concurrency, 1, MOST_AT_ONCE)]
    file = questions or shipped_seeds() / "questions.jsonl"
    texts = [question.text for question in spread(read_questions(file).questions, requests)]
    rows: list[BenchRow] = []
    row_ms = _row_ms()
    say(f"{label()}; a row takes {row_ms:.2f} ms")
    for kind in KINDS:
        settings = target.settings(corpus=corpus, k=k, timeout=60.0, cache_megabytes=64 if kind == "process" else 0)
        rows += with_engine(settings, partial(_rows, kind, texts, requests, levels, row_ms))
    print_records(rows, as_json, "asking")


def _row_ms() -> float:
    session, pieces = ReaderSession(shipped.folder()), np.full(ROW_TOKENS, SOME_PIECE, np.int32)
    row = reader.join(pieces[:10], pieces[13:])
    times = []
    for _ in range(ROW_RUNS):
        start = perf_counter()
        session.read([row])
        times.append(1000 * (perf_counter() - start))
    return percentile(times, 0.5)


async def _rows(
    kind: str, texts: Sequence[str], requests: int, levels: Sequence[int], row_ms: float, engine: Engine
) -> list[BenchRow]:
    for text in texts if kind != "computed" else texts[:3]:
        await engine.ask(text)  # warms connections; for the cached kinds, the caches
    return [await _row(engine, kind, list(islice(cycle(texts), requests)), level, row_ms) for level in levels]


async def _row(engine: Engine, kind: str, texts: Sequence[str], concurrency: int, row_ms: float) -> BenchRow:
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
    per_second = len(times) / seconds
    relative = (round(p50 / row_ms, 2), round(per_second * row_ms / 1000, 3))
    return BenchRow(kind, concurrency, len(times), p50, p90, p99, round(per_second, 1), *relative)


def numbers(text: str, low: float, high: float) -> list[float]:
    try:
        values = [float(part) for part in text.split(",")]
    except ValueError:
        values = []
    if not values or not all(low <= number <= high for number in values):
        raise WrongSetting(f"{text!r} is not a list of numbers from {low:g} to {high:g}, separated by commas")
    return values


def percentile(values: Sequence[float], share: float) -> float:
    """The least value that at least `share` of them do not exceed (nearest rank)."""
    assert values, "a percentile of nothing"
    ascending = sorted(values)
    return ascending[max(0, ceil(share * len(ascending)) - 1)]
