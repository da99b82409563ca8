"""`shardqa-models calibrate-corpus`: scores fitted to one corpus, on questions of its own."""

from collections import Counter
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from shardqa.cli.connection import with_engine
from shardqa.cli.faults import WrongSetting
from shardqa.cli.options import CorpusOption, JsonOption, Target, on_cluster
from shardqa.cli.output import NOTHING, print_json, print_table, say
from shardqa.engine import Engine
from shardqa.errors import BadData
from shardqa.models.corpus_scoring import CorpusScoring, FittedOn
from shardqa.models.scoring import Scoring
from shardqa_toolchain.cli.eval import CONCURRENCY, ask_each, read_questions
from shardqa_toolchain.corpus_reading import read_all
from shardqa_toolchain.squad import SquadQuestion

if TYPE_CHECKING:
    from shardqa_toolchain.calibrate import CalibrationQuestion, ScoringOutcome
    from shardqa_toolchain.corpus_calibration import Gain


@on_cluster
def calibrate_corpus(
    target: Target,
    questions: Annotated[
        Path | None, typer.Argument(help="questions.jsonl: thirty or more with answers. None: show what is in use.")
    ] = None,
    corpus: CorpusOption = None,
    k: Annotated[int, typer.Option("--k", min=1, max=50, help="Passages read per question.")] = 5,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Fit and report, store nothing.")] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Store it even where it gains nothing, or keeps fewer answers.")
    ] = False,
    undo: Annotated[bool, typer.Option("--undo", help="Go back to the scores before the last calibration.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Fit the scores of one corpus to questions of its own, say what that gains, and use them from now on.

    Each question with an answer is asked once more without the documents that answer it. What is replaced is kept;
    --undo brings it back. Exits with 1 where nothing was gained, and so nothing stored.

    Example: shardqa-models calibrate-corpus questions.jsonl --corpus handbook
    """
    if undo and questions is not None:
        raise WrongSetting("--undo takes no questions; leave out the file")
    settings = target.settings(corpus=corpus, timeout=60.0)
    if questions is None:
        _show(with_engine(settings, _undone if undo else _in_use), settings.corpus, as_json)
        return
    sample = read_questions(questions).questions
    report = with_engine(settings, lambda engine: _calibrate(engine, sample, k, dry_run, force))
    if as_json:
        print_json(report)
    else:
        _print(report, settings.corpus)
    if not report["stored"] and not dry_run:
        raise typer.Exit(NOTHING)


async def _in_use(engine: Engine) -> CorpusScoring | None:
    return await engine.scores.stored(engine.settings.corpus)


async def _undone(engine: Engine) -> CorpusScoring | None:
    corpus = engine.settings.corpus
    own = await engine.scores.stored(corpus)
    if own is None:
        raise BadData(f"the corpus {corpus!r} has the reader's scores; there is nothing to undo")
    await engine.scores.store(corpus, own.previous)
    return own.previous


async def _calibrate(
    engine: Engine, questions: tuple[SquadQuestion, ...], k: int, dry_run: bool, force: bool
) -> dict[str, Any]:
    from shardqa_toolchain import corpus_calibration as fitting

    corpus = engine.settings.corpus
    fitting.check_enough(questions)
    previous = await engine.scores.stored(corpus)
    sample, readers = await _read(engine, questions, k)
    scoring, in_use = fitting.fit(sample, readers), previous.over(readers) if previous else readers
    gain = fitting.gain(sample, readers, in_use)
    own = CorpusScoring.of(scoring, readers, _fitted_on(sample, gain))
    is_stored = not dry_run and (force or gain.is_worth_it)
    if is_stored:
        before = previous.model_copy(update={"previous": None}) if previous else None
        await engine.scores.store(corpus, own.model_copy(update={"previous": before}))
    return {
        "corpus": corpus,
        "stored": is_stored,
        "before": _figures(gain.before, gain.log_loss_before, in_use),
        "after": _figures(gain.after, gain.log_loss_after, scoring),
        "scoring": own.model_dump(),
    }


async def _read(
    engine: Engine, questions: tuple[SquadQuestion, ...], k: int
) -> tuple[list["CalibrationQuestion"], Scoring]:
    from shardqa_toolchain import corpus_calibration as fitting

    replies = await ask_each(
        questions, lambda one: read_all(engine, engine.question(one.text, k=2 * k)), CONCURRENCY, "reading"
    )
    readers = {one.readers for one in replies}
    if len(readers) > 1:
        raise BadData("shards have different readers at the moment; calibrate once 'shardqa status' shows one")
    sample = (
        one
        for question, read in zip(questions, replies, strict=True)
        for one in fitting.asked_of(question, read.passages, k, read.size)
    )
    return list(sample), readers.pop()


def _fitted_on(sample: list["CalibrationQuestion"], gain: "Gain") -> FittedOn:
    counts = Counter(one.kind for one in sample)
    return FittedOn(
        at=datetime.now(UTC).isoformat(timespec="seconds"),
        answerable=counts["answerable"],
        absent=counts["absent"],
        tricks=counts["trick"],
        log_loss_before=round(gain.log_loss_before, 4),
        log_loss_after=round(gain.log_loss_after, 4),
    )


def _figures(outcome: "ScoringOutcome", log_loss: float, scoring: Scoring) -> dict[str, Any]:
    return {**asdict(outcome), "log_loss": log_loss, "below": asdict(scoring.below)}


def _print(report: dict[str, Any], corpus: str) -> None:
    rows = [
        (name, f"{of['kept']:.1f}", f"{of['refused']:.1f}", f"{of['calibration_error']:.3f}", f"{of['log_loss']:.3f}")
        for name in ("before", "after")
        for of in (report[name],)
    ]
    sample = report["scoring"]["fitted"]
    title = f"{corpus}: {sample['answerable']} questions with answers, {sample['absent']} without; each fifth unseen"
    print_table(("scores", "right answers kept %", "absent refused %", "calibration error", "log loss"), rows, title)
    if report["stored"]:
        say("stored; answers use it within seconds. Back again: shardqa-models calibrate-corpus --undo")
    else:
        say("not stored; --force stores what gains nothing, or keeps fewer right answers, on unseen questions")


def _show(own: CorpusScoring | None, corpus: str, as_json: bool) -> None:
    if as_json:
        print_json({"corpus": corpus, "scoring": own.model_dump() if own else None})
    elif own is None:
        say(f"{corpus} has the reader's scores")
    else:
        sample = own.fitted
        say(f"{corpus} has its own scores, fitted {sample.at} on {sample.answerable} questions with answers")
        print_table(("answer when", "score from"), list(own.below.items()))
