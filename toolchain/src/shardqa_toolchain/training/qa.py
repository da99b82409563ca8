"""Fine-tuning a BERT into a reader: data prepared, trained, written as a checkpoint with card and picture."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shardqa.models.shipped import sha256
from shardqa.models.tokenizer import Tokenizer
from shardqa_toolchain import cards
from shardqa_toolchain.folders import written_atomically
from shardqa_toolchain.training import loop
from shardqa_toolchain.training.data import PreparedData, prepare
from shardqa_toolchain.training.held_out import LOSS
from shardqa_toolchain.training.network import SpanReader
from shardqa_toolchain.training.recipe import Data, Recipe
from shardqa_toolchain.training.saved import WEIGHTS_FILE, load_reader, write_checkpoint
from shardqa_toolchain.training.spans import SpanTask


@dataclass(frozen=True, slots=True)
class Report:
    questions: int  # learnt from
    held_out: int  # questions set apart
    negatives: int  # to draw from
    faults: tuple[str, ...]  # questions left out, each with its reason
    steps: int
    loss: float  # mean over the last steps, in nats
    figures: dict[str, float]  # on what was held out, see `held_out.figures`

    @property
    def held_out_loss(self) -> float | None:
        """Returns the mean loss in nats; None where nothing was held out."""
        return self.figures.get(LOSS)


def train(
    recipe: Recipe, out: Path, work: Path, report: Callable[[loop.Progress], None] = lambda progress: None
) -> Report:
    """Make a reader as the recipe says and write it to ``out``; ``work`` holds what resuming needs.

    Raises BadModel for a start that is no BERT, BadData for data or settings that can't be used, or an ``out`` that is
    there already, SetupError for a full disk.
    """
    start = Path(recipe.start)
    with written_atomically(out) as folder:
        loop.sow(recipe.schedule.seed)
        network = load_reader(start, recipe.evidence)
        data = prepare(recipe.data, Tokenizer.load(start))
        task = span_task(network, data, recipe.data, recipe.schedule.seed)
        last = loop.train(task, recipe.schedule, work, identity(recipe), report)
        write_checkpoint(network, start, folder)
        outcome = reported(data, last, task)
        cards.derive(start, folder, step("train qa", recipe, outcome))
    return outcome


def span_task(network: SpanReader, prepared: PreparedData, data: Data, seed: int) -> SpanTask:
    return SpanTask(
        network,
        prepared.rows(data.max_row),
        prepared.negative_rows(data.max_row),
        data,
        seed,
        prepared.held_out_rows(data.max_row),
    )


def identity(recipe: Recipe) -> dict[str, Any]:
    """Returns what makes a run this one: its settings, and the content of data and start."""
    files = {name: sha256(Path(name)) for name in recipe.data.train}
    return {"recipe": changed(recipe), "files": files, "start": sha256(Path(recipe.start) / WEIGHTS_FILE)}


def changed(recipe: Recipe) -> dict[str, Any]:
    """Returns the settings that are not at their default: so a new setting does not make a run another one."""
    usual, settings = Recipe().as_json(), recipe.as_json()
    parts = {name: value if isinstance(value, dict) else {"": value} for name, value in settings.items()}
    return {
        f"{name}.{key}": value
        for name, part in parts.items()
        for key, value in part.items()
        if value != (usual[name][key] if key else usual[name])
    }


def reported(prepared: PreparedData, last: loop.Progress, task: SpanTask) -> Report:
    with loop.measuring(task.trained):
        figures = task.held_out_figures(loop.CPU)
    return Report(
        questions=len(prepared.learnt),
        held_out=len(prepared.held_out),
        negatives=len(prepared.negatives),
        faults=tuple(f"{fault.where}: {fault.what}" for fault in prepared.faults),
        steps=last.steps,
        loss=last.loss,
        figures=figures,
    )


def step(name: str, recipe: Recipe, report: Report) -> cards.CardStep:
    """The card's entry of a run."""
    figures = {"questions": report.questions, "faults": len(report.faults), "steps": report.steps, "loss": report.loss}
    return cards.CardStep(name, {**recipe.as_json(), **figures, "held_out": report.figures})
