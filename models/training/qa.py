"""Fine-tuning a BERT into a reader: data prepared, trained, written as a checkpoint."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors.torch import save_file

from shardqa.models import squad
from shardqa.models.conversion.checkpoint import Checkpoint
from shardqa.models.shipped import sha256
from shardqa.models.tokenizer import TOKENIZER_FILE, Tokenizer
from shardqa.models.training import examples, loop
from shardqa.models.training.network import Sizes, SpanReader, load_encoder, tensors
from shardqa.models.training.recipe import Data, Recipe
from shardqa.models.training.spans import SpanTask, learning_rows

HELD_OUT_ROWS = 1024
"""At most so many rows make the held-out loss: enough to see it turn, computed in seconds."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """Data as a run takes it."""

    learnt: list[examples.Source]
    held_out: list[examples.Source]
    negatives: list[examples.Example]
    faults: list[examples.Fault]


def is_held_out(paragraph: str, share: float) -> bool:
    """Whether a paragraph's article is set apart: by its title alone, so that all files and runs agree."""
    title = paragraph.rsplit("/", 1)[0]
    return int.from_bytes(hashlib.sha256(title.encode()).digest()[:4], "big") < share * 2**32


def prepare(data: Data, tokenizer: Tokenizer) -> Prepared:
    """Read and label the files; raises BadData as `examples.read` does, OSError as open() does."""
    paths = [Path(name) for name in data.checked().train]
    sources, faults = examples.read(paths, tokenizer, data.skip_faulty)
    held_out = [one for one in sources if is_held_out(one.question.document or "", data.held_out)]
    learnt = [one for one in sources if not is_held_out(one.question.document or "", data.held_out)]
    negatives = [
        negative
        for path in (paths if data.negatives else [])
        for negative in examples.hard_negatives(learnt_of(path, learnt), squad.read_squad(path), tokenizer)
    ]
    return Prepared(learnt, held_out, negatives, faults)


def learnt_of(path: Path, learnt: Sequence[examples.Source]) -> list[examples.Source]:
    """The sources whose questions stand in the file."""
    ids = {question.id for question in squad.read_squad(path).questions}
    return [source for source in learnt if source.question.id in ids]


def span_task(network: SpanReader, prepared: Prepared, data: Data, seed: int) -> SpanTask:
    """The task of a run."""
    rows = [row for one in prepared.learnt for row in learning_rows(one.example, data.max_row)]
    negatives = [row for example in prepared.negatives for row in learning_rows(example, data.max_row)]
    held_out = [row for one in prepared.held_out for row in learning_rows(one.example, data.max_row)]
    stride = max(1, len(held_out) // HELD_OUT_ROWS)
    return SpanTask(network, rows, negatives, data.negatives, seed, held_out[::stride])


def train(
    recipe: Recipe,
    out: Path,
    work: Path,
    report: Callable[[loop.Progress], None] = lambda progress: None,
) -> Prepared:
    """Make a reader as the recipe says and write it to ``out``; ``work`` holds what resuming needs.

    Raises BadModel for a start that is no BERT, BadData for data or settings that can't be used.
    """
    start = Checkpoint.load(Path(recipe.start))
    tokenizer = Tokenizer.load(start.folder)
    prepared = prepare(recipe.data, tokenizer)
    network = SpanReader(Sizes.of(start.config, start.weights), recipe.dropout)
    load_reader(network, start)
    task = span_task(network, prepared, recipe.data, recipe.schedule.seed)
    loop.train(task, recipe.schedule, work, identity(recipe), report)
    write_checkpoint(network, start, out)
    return prepared


def identity(recipe: Recipe) -> dict[str, Any]:
    """What makes a run this one: settings and the content of data and start, not where they lie."""
    files = {name: sha256(Path(name)) for name in recipe.data.train}
    return {"recipe": recipe.as_json(), "files": files, "start": sha256(Path(recipe.start) / "model.safetensors")}


def load_reader(network: SpanReader, start: Checkpoint) -> None:
    """Set a network's weights from a checkpoint; a start without a span head keeps the fresh one."""
    import torch

    load_encoder(network.encoder, start.weights)
    if "qa_outputs.weight" in start.weights:
        with torch.no_grad():
            network.qa_outputs.weight.copy_(torch.from_numpy(start.weights["qa_outputs.weight"]))
            network.qa_outputs.bias.copy_(torch.from_numpy(start.weights["qa_outputs.bias"]))


def write_checkpoint(network: SpanReader, start: Checkpoint, out: Path) -> None:
    """Write a reader's checkpoint as transformers reads it."""
    out.mkdir(parents=True, exist_ok=True)
    head = {f"qa_outputs.{name}": value.detach().clone() for name, value in network.qa_outputs.named_parameters()}
    save_file({**tensors(network.encoder), **head}, out / "model.safetensors", {"format": "pt"})
    (out / "config.json").write_text(json.dumps(start.config, indent=2) + "\n", encoding="utf-8")
    shutil.copyfile(start.folder / TOKENIZER_FILE, out / TOKENIZER_FILE)
