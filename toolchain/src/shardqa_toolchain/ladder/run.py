"""Climbing: networks are made, every step is measured in turn for several rounds, then its answers are scored."""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from shardqa import machine
from shardqa.errors import BadModel, SetupError
from shardqa.models import shipped
from shardqa.models.scoring import SCORING_FILE
from shardqa.models.tokenizer import Tokenizer
from shardqa_toolchain.cards import Card, address
from shardqa_toolchain.conversion.checked import Check
from shardqa_toolchain.conversion.checkpoint import SPAN_HEAD, Checkpoint
from shardqa_toolchain.conversion.export import export
from shardqa_toolchain.conversion.quantize import quantize
from shardqa_toolchain.ladder import inputs, weights
from shardqa_toolchain.ladder.job import TORCH, TRANSFORMERS
from shardqa_toolchain.ladder.processes import Ran, score_step, time_step
from shardqa_toolchain.ladder.results import Ladder, Rung, figures, rung, with_shares
from shardqa_toolchain.ladder.steps import LadderModels, LadderStep, sides, steps
from shardqa_toolchain.ladder.worker import ScoreShares
from shardqa_toolchain.windows import WINDOW_TOKENS

Report = Callable[[str], None]  # Is told what is being done

# By `Rung`'s name of the score: file of the questions, and folder of the scoring if answers may be refused.
ScoreSets = dict[str, tuple[Path, str | None]]


@dataclass(frozen=True, slots=True)
class LadderSettings:
    checkpoint: Path | None  # trained; a tiny random one when there is none, for trying
    reader: Path | None = None  # the checkpoint in int8; made from it unless given
    # Where the ladder stands: a trained checkpoint; random weights of BERT-base's size unless given.
    base: Path | None = None
    questions: Path | None = None  # SQuAD file; ``seeds/`` unless given
    refusals: Path | None = None  # SQuAD 2.0 file, to score with refusals on
    count: int = 100  # questions that are timed
    scored: int = 1000  # questions that are scored, of either file
    rounds: int = 3
    seconds: float = 4.0  # each step is timed in each round, at least: a pass over the questions may take longer
    sides: bool = True  # measure what is shown beside the ladder too


def run(settings: LadderSettings, work: Path, report: Report = lambda news: None) -> Ladder:
    """Measure all steps; ``work`` is an empty folder for networks and inputs, about 1 GB.

    A step whose process dies is in the result with its fault. Raises BadModel for networks, BadData for questions that
    can't be used.
    """
    models = _models(settings, work, report)
    longest = min(WINDOW_TOKENS, *(_positions(_trained(folder)) for folder in (models.base, models.checkpoint)))
    timed, description = _drawn(settings, models, longest, work)
    ladder_steps = steps(models, timed, longest, settings.seconds, sorted(os.sched_getaffinity(0)))
    if settings.sides:
        ladder_steps += sides(models, ladder_steps, set(machine.processor().flags or ()))
    sets = _score_sets(settings, models, work)
    rungs = _scored(_timed(ladder_steps, settings.rounds, report), ladder_steps, sets, report)
    return Ladder(machine.label(), description, settings.rounds, with_shares(rungs), tiny=settings.checkpoint is None)


def _models(settings: LadderSettings, work: Path, report: Report) -> LadderModels:
    random = settings.checkpoint is None
    folder = settings.checkpoint or weights.write_random(work / "tiny", weights.TINY, shipped.folder())
    checkpoint = _trained(folder)
    if settings.reader is not None:
        _check_source(shipped.checked_folder(settings.reader), folder)
    base = settings.base
    if base is None:
        report("writing random weights of the size to begin with")
        sizes = replace(weights.TINY_BASE if random else weights.BASE, vocabulary=_words(checkpoint).shape[0])
        base = weights.write_random(work / "base", sizes, folder, seed=1)
    # A random network answers by a hair's breadth, so that its conversions need not agree with it.
    check = Check(limit=4, keep_failing=True) if random else Check()
    report("exporting and quantizing the checkpoint")
    export(folder, work / "float32", check=check)
    if settings.reader is None:
        quantize(folder, work / "int8", check=check)
    return LadderModels(
        base=base,
        checkpoint=folder,
        exact=work / "float32",
        reader=settings.reader or work / "int8",
        base_is_random=settings.base is None,
        checkpoint_is_random=random,
        # transformers knows no layers of unequal sizes; head_size is there when they are.
        checkpoint_backend=TORCH if "head_size" in checkpoint.config else TRANSFORMERS,
        base_size=_size(_trained(base)),
        checkpoint_size=_size(checkpoint),
    )


def quantized_from(reader: Path) -> str | None:
    """Address of the checkpoint that a reader was quantized from; None where its card does not say."""
    card = Card.find(reader)
    made = [step for step in card.steps if step.name == "quantize"] if card else []
    return made[-1].settings.get("source") if made else None


def _check_source(reader: Path, checkpoint: Path) -> None:
    """Raise BadModel when the reader's card says that it was made from another checkpoint."""
    source = quantized_from(reader)
    if source is not None and source != address(checkpoint):
        raise BadModel(
            f"{reader} was made from a checkpoint with the address {source}, {checkpoint} has {address(checkpoint)}; "
            "name the one that it was made from, or leave --reader away"
        )


def _trained(folder: Path) -> Checkpoint:
    checkpoint = Checkpoint.load(folder)
    if not checkpoint.has_span_head:
        raise BadModel(f"{folder} has no span head ({SPAN_HEAD}); train one: shardqa-models train qa")
    return checkpoint


def _size(checkpoint: Checkpoint) -> str:
    """Describes a checkpoint's size, such as "6 x 384, 22.6 million parameters"."""
    parameters = sum(value.size for value in checkpoint.weights.values())
    return f"{checkpoint.shape.layers} x {_words(checkpoint).shape[1]}, {parameters / 1e6:.1f} million parameters"


def _words(checkpoint: Checkpoint) -> NDArray[np.float32]:
    return checkpoint.weights["bert.embeddings.word_embeddings.weight"]


def _positions(checkpoint: Checkpoint) -> int:
    return len(checkpoint.weights["bert.embeddings.position_embeddings.weight"])


def _drawn(settings: LadderSettings, models: LadderModels, longest: int, work: Path) -> tuple[Path, str]:
    """Writes the timed questions; returns their file and a description of them."""
    questions = inputs.draw(settings.questions, settings.count)
    inputs.save(questions, work / "timed.json")
    readings = inputs.readings(questions, Tokenizer.load(models.checkpoint), longest)
    lengths = [len(row) for reading in readings for _, row in reading.windows]
    source = settings.questions.name if settings.questions else "seeds"
    mean, long = np.mean(lengths), np.percentile(lengths, 95)
    rows = f"{len(lengths)} rows of {mean:.0f} tokens (95 % have up to {long:.0f})"
    return work / "timed.json", f"{len(questions)} questions of {source} in {rows}"


def _timed(ladder_steps: Sequence[LadderStep], rounds: int, report: Report) -> list[Rung]:
    """Every step once a round, up and down in turn: what slows the machine for a while slows no step alone."""
    runs: dict[str, list[list[Ran]]] = {step.name: [] for step in ladder_steps}
    faults: dict[str, str] = {}
    for number in range(rounds):
        for step in ladder_steps[:: -1 if number % 2 else 1]:
            if step.name in faults:
                continue
            report(f"round {number + 1}/{rounds}: {step.name}")
            try:
                runs[step.name].append(time_step(step.name, step.jobs))
            except SetupError as error:
                faults[step.name] = str(error)
                report(str(error))
    return [_rung(step, runs[step.name], faults.get(step.name, "")) for step in ladder_steps]


def _rung(step: LadderStep, rounds: Sequence[Sequence[Ran]], fault: str) -> Rung:
    return replace(rung(step), fault=fault, figures=None if fault else figures(rounds))


def _scored(rungs: Sequence[Rung], ladder_steps: Sequence[LadderStep], sets: ScoreSets, report: Report) -> list[Rung]:
    scored = []
    for one, step in zip(rungs, ladder_steps, strict=True):
        if not step.unscored and not one.fault:
            report(f"scoring: {step.name}")
            one = _with_scores(one, step, sets)
        scored.append(one)
    return scored


def _score_sets(settings: LadderSettings, models: LadderModels, work: Path) -> ScoreSets:
    inputs.save(inputs.draw(settings.questions, settings.scored), work / "scored.json")
    sets: ScoreSets = {"scored": (work / "scored.json", None)}
    if settings.refusals is not None:
        if not (models.reader / SCORING_FILE).exists():
            raise BadModel(
                f"{models.reader} has no {SCORING_FILE}, whose threshold says what is refused; give one that has: "
                "--reader (shardqa-models calibrate writes it), or leave --refusals away"
            )
        inputs.save(inputs.draw(settings.refusals, settings.scored, unanswerable=True), work / "refusals.json")
        sets["refusing"] = (work / "refusals.json", str(models.reader))
    return sets


def _with_scores(unscored: Rung, step: LadderStep, sets: ScoreSets) -> Rung:
    scores: dict[str, ScoreShares] = {}
    for name, (file, scoring) in sets.items():
        job = replace(step.jobs[0], inputs=str(file), scored=True, scoring=scoring)
        try:
            scores[name] = score_step(step.name, job)
        except SetupError as error:
            return replace(unscored, fault=str(error))
    return replace(unscored, scored=scores["scored"], refusing=scores.get("refusing"))
