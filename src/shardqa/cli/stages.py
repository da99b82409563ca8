"""`shardqa bench stages`: what reading in stages saves, and what it costs in answers."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import ceil
from pathlib import Path
from time import perf_counter
from typing import Annotated

import typer

from shardqa.cli.connection import with_engine
from shardqa.cli.eval import LimitOption, corpus_of, prepare, read_questions, spread
from shardqa.cli.faults import WrongSetting
from shardqa.cli.options import JsonOption, Target, on_cluster
from shardqa.cli.output import print_records, say
from shardqa.config import MAX_K, Settings
from shardqa.engine import Engine
from shardqa.engine.reading import StagedReading
from shardqa.models import metrics
from shardqa.models.squad import SquadQuestion
from shardqa.question import Question

TIMED = 40  # questions asked anew for each row's times


@dataclass(frozen=True, slots=True)
class StageOutcome:
    """The marks of one question, read with one combination of k and sure."""

    em: float
    f1: float
    rows: int  # passages read


@dataclass(frozen=True, slots=True)
class StageRow:
    k: int
    sure: float
    em: float  # percent, the best candidate taken for the answer, over the answerable
    f1: float
    passages: float  # read, on average
    p50_ms: float
    p90_ms: float


@on_cluster
def bench_stages(
    target: Target,
    file: Annotated[Path, typer.Argument(help="SQuAD's JSON; its paragraphs are ingested. .gz too.")],
    limit: LimitOption = 500,
    k: Annotated[str, typer.Option("--k", help="Passages to read.")] = "5,10",
    sure: Annotated[str, typer.Option("--sure", help="Scores from which no more is read; 1 reads all.")] = (
        "1,0.8,0.6,0.5,0.4"
    ),
    as_json: JsonOption = False,
) -> None:
    """EM, F1, passages read and times for each combination of k and sure, the same questions in one run.

    Example: shardqa bench stages dev-v1.1.json.gz --limit 500
    """
    data = read_questions(file)
    questions = [question for question in spread(data.questions, limit) if question.answers]
    combinations = [(int(number), score) for number in numbers(k, 1, MAX_K) for score in numbers(sure, 0, 1)]
    settings = target.settings(corpus=corpus_of(file, data), timeout=60.0, cache_megabytes=0)

    async def work(engine: Engine) -> list[StageRow]:
        await prepare(engine, data, settings.corpus)
        say(f"reading {len(questions)} questions, {max(k for k, _ in combinations)} passages each")
        outcomes = [await _outcomes(engine, question, combinations) for question in questions]
        return [
            await _row(settings, *combination, [marks[n] for marks in outcomes], spread(questions, TIMED))
            for n, combination in enumerate(combinations)
        ]

    print_records(with_engine(settings, work), as_json, f"{file.name}, in stages")


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
    ordered = sorted(values)
    return ordered[max(0, ceil(share * len(ordered)) - 1)]


async def _outcomes(
    engine: Engine, question: SquadQuestion, combinations: Sequence[tuple[int, float]]
) -> list[StageOutcome]:
    """Every passage is read once; what each combination would have read is a part of that."""
    most = max(k for k, _ in combinations)
    ranked = await engine.ranking.rank(engine.question(question.text, fresh=True), most)
    own = await engine.scores.of(engine.settings.corpus)
    reading = StagedReading(engine.readers, ranked, own=own)
    await reading.upto(len(ranked.passages))
    return list(_scored(reading, ranked.question, question, combinations))


def _scored(
    reading: StagedReading, whole: Question, question: SquadQuestion, combinations: Sequence[tuple[int, float]]
) -> Iterator[StageOutcome]:
    for k, sure in combinations:
        read, variant = 0, replace(whole, k=k, sure=sure)
        while (stage := reading.next_stage(variant, read)) > read:
            read = stage
        best = next((one.answer for one in reading.candidates(read)), "")
        yield StageOutcome(metrics.exact_match(best, question.answers), metrics.f1(best, question.answers), read)


async def _row(
    settings: Settings, k: int, sure: float, outcomes: Sequence[StageOutcome], timed: Sequence[SquadQuestion]
) -> StageRow:
    engine = await Engine.connect(settings.model_copy(update={"k": k, "sure": sure}))
    times = []
    try:
        await engine.ask(timed[0].text)
        for question in timed:
            start = perf_counter()
            await engine.ask(question.text, fresh=True)
            times.append(1000 * (perf_counter() - start))
    finally:
        await engine.close()
    count = len(outcomes)
    return StageRow(
        k=k,
        sure=sure,
        em=round(100 * sum(one.em for one in outcomes) / count, 2),
        f1=round(100 * sum(one.f1 for one in outcomes) / count, 2),
        passages=round(sum(one.rows for one in outcomes) / count, 2),
        p50_ms=round(percentile(times, 0.5), 1),
        p90_ms=round(percentile(times, 0.9), 1),
    )
