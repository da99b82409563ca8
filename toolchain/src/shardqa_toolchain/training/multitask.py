"""Several tasks on one encoder: data read, learnt together, written as a checkpoint and as ONNX, each task measured."""

import json
import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import save_file
from torch import Tensor, nn
from torch.nn import functional

from shardqa.models.shipped import sha256
from shardqa.models.tokenizer import TOKENIZER_FILE, Tokenizer
from shardqa_toolchain import cards
from shardqa_toolchain.conversion.checkpoint import Checkpoint
from shardqa_toolchain.conversion.quantize import quantize
from shardqa_toolchain.folders import written_atomically
from shardqa_toolchain.multitask import lines, scores
from shardqa_toolchain.multitask.rows import IGNORED, TaskRow, joined, task_rows
from shardqa_toolchain.multitask.tasks import (
    ANSWERABLE,
    CONTROL,
    FORMS,
    HEADS,
    KINDS,
    NO,
    OUTSIDE,
    SETTING,
    SIGNS,
    SPAN,
    TEXT,
    YES,
    Task,
    TaskSet,
)
from shardqa_toolchain.training import loop
from shardqa_toolchain.training.batches import ROUND_TOKENS
from shardqa_toolchain.training.losses import barred
from shardqa_toolchain.training.network import Encoder, Sizes, initialise, load_encoder, tensors
from shardqa_toolchain.training.saved import CONFIG_FILE, WEIGHTS_FILE, config_of
from shardqa_toolchain.training.settings import checked, read_toml, section

CHECKPOINT, INT8 = "checkpoint", "int8"  # folders that a run writes
NAME = re.compile("[a-z][a-z0-9_]*")  # a task's name is part of an output's


@dataclass(frozen=True, slots=True)
class TaskEntry:
    """A ``[[task]]`` of a recipe."""

    name: str = ""
    kind: str = ""
    train: tuple[str, ...] = ()  # files; paths are relative to where the command is run
    dev: tuple[str, ...] = ()  # files to measure on
    weight: float = 1.0  # of its loss

    def checked(self, where: str) -> Self:
        """Returns itself; raises BadData with the first setting out of its range."""
        rules = (
            ("name", bool(NAME.fullmatch(self.name)) and self.name != "control", "a word of small letters, digits, _"),
            ("kind", self.kind in KINDS, f"one of {', '.join(KINDS)}"),
            ("train", bool(self.train), "one file or more"),
            ("weight", self.weight > 0, "a number above 0"),
        )
        return checked(self, rules, f"{where}: ")


@dataclass(frozen=True, slots=True)
class MultitaskRecipe:
    start: str = ""  # folder of the checkpoint to start from
    form: str = HEADS
    max_row: int = 320  # tokens of a row
    task: tuple[TaskEntry, ...] = ()
    schedule: loop.Schedule = field(default_factory=loop.Schedule)

    @classmethod
    def read(cls, path: Path) -> Self:
        """Reads a recipe's TOML; raises BadData with the setting that is unknown or out of range."""
        tables = read_toml(path)
        entries = [section(path, "task", TaskEntry, entry) for entry in tables.pop("task", [])]
        schedule = section(path, "schedule", loop.Schedule, tables.pop("schedule", {}))
        plain = section(path, "", cls, {**tables, "schedule": schedule})
        return replace(plain, task=tuple(entry.checked(f"{path}, task {entry.name!r}") for entry in entries)).checked()

    def checked(self) -> Self:
        """Returns itself; raises BadData with the first setting that can't be."""
        names, kinds = [entry.name for entry in self.task], [entry.kind for entry in self.task]
        rules = (
            ("start", bool(self.start), "a checkpoint's folder"),
            ("form", self.form in FORMS, f"one of {', '.join(FORMS)}"),
            ("form", self.form == HEADS or SPAN not in kinds, "heads, since a span has no label at a sign,"),
            ("form", self.form == HEADS or len(names) <= len(SIGNS), f"heads for more than {len(SIGNS)} tasks, it"),
            ("max_row", 224 <= self.max_row <= 512, "224 to 512"),
            ("task", bool(names) and len(set(names)) == len(names), "one [[task]] or more, each of its own name,"),
            ("task", kinds.count(SPAN) <= 1, "one task at most of the kind span"),
        )
        return checked(self, rules)


@dataclass(frozen=True, slots=True)
class Report:
    examples: Mapping[str, int]  # learnt from, by task
    rows: int
    steps: int
    loss: float  # mean over the last steps
    scores: Mapping[str, float]  # of the int8 network, percent by task


class MultitaskNetwork(nn.Module):
    """A BERT with the heads of its tasks; outputs have the names and shapes of the ONNX network's."""

    def __init__(self, sizes: Sizes, tasks: TaskSet) -> None:
        super().__init__()
        self.tasks = tasks
        self.encoder = Encoder(sizes)
        self.heads = nn.ModuleList(nn.Linear(sizes.hidden, head.width) for head in tasks.heads)
        self.apply(initialise)

    def forward(self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor) -> dict[str, Tensor]:
        """Logits by output; inputs are int64 [batch, tokens]."""
        hidden = self.encoder(input_ids, attention_mask, token_type_ids)[-1]
        outputs: dict[str, Tensor] = {}
        for size, head in zip(self.tasks.heads, self.heads, strict=True):
            logits = head(hidden[:, 0] if size.at_first else hidden).float()
            outputs |= zip(size.outputs, logits.unbind(-1) if len(size.outputs) > 1 else (logits,), strict=True)
        return outputs

    def head_tensors(self) -> dict[str, Tensor]:
        """The heads' weights by their names in a checkpoint; setting one sets the network's."""
        return {
            f"{size.tensor}.{part}": value
            for size, head in zip(self.tasks.heads, self.heads, strict=True)
            for part, value in head.named_parameters()
        }


@dataclass(slots=True)
class MultitaskTask:
    """Learn several tasks from rows that carry the labels of one or more of them."""

    network: MultitaskNetwork
    rows: Sequence[TaskRow]
    weights: Mapping[str, float]  # of the tasks' losses

    @property
    def trained(self) -> nn.Module:
        return self.network

    def lengths(self, passed: int) -> Sequence[int]:
        return [len(row) for row in self.rows]

    def held_out_figures(self, device: torch.device) -> dict[str, float]:
        return {}

    def loss(self, passed: int, rows: Sequence[int], device: torch.device) -> Tensor:
        """The mean over rows of the weighted sum of the row's losses; a task's is the mean over its labels there.

        So tasks are mixed in proportion to their rows and weights.
        """
        batch = [self.rows[row] for row in rows]
        length = -(-max(map(len, batch)) // ROUND_TOKENS) * ROUND_TOKENS
        parts = ("input_ids", "attention_mask", "token_type_ids")
        ids, mask, types = (_padded([getattr(one.row, part) for one in batch], length, 0).to(device) for part in parts)
        outputs = self.network(ids, mask, types)
        total = torch.zeros((), device=device)
        for task in self.network.tasks.tasks:
            targets = [one.targets.get(task.name, np.zeros(0, np.int64)) for one in batch]
            if any(map(len, targets)):
                logits = _choices(self.network.tasks, task, outputs, types)
                target = _padded(targets, logits.shape[1], IGNORED).to(device)
                losses = functional.cross_entropy(
                    logits.transpose(1, 2), target, ignore_index=IGNORED, reduction="none"
                )
                labelled = (target != IGNORED).sum(1).clamp(min=1)
                total = total + self.weights[task.name] * (losses.sum(1) / labelled).mean()
        return total


def _choices(tasks: TaskSet, task: Task, outputs: Mapping[str, Tensor], types: Tensor) -> Tensor:
    """A task's logits, [rows, places, classes], a place for each number of its targets."""
    if tasks.form == CONTROL:
        return outputs["control_logits"]
    if task.kind == SPAN:
        return torch.stack([outputs["start_logits"], outputs["end_logits"]], dim=1) + barred(types).transpose(1, 2)
    logits = outputs[f"{task.name}_logits"]
    return logits[:, None] if task.is_of_row else logits


def _padded(values: Sequence[NDArray[np.int64]], length: int, filling: int) -> Tensor:
    table = np.full((len(values), length), filling, np.int64)
    for line, value in enumerate(values):
        table[line, : len(value)] = value
    return torch.from_numpy(table)


def train(
    recipe: MultitaskRecipe, out: Path, work: Path, report: Callable[[loop.Progress], None] = lambda progress: None
) -> Report:
    """Make a network for several tasks: the folders ``checkpoint`` and ``int8`` of ``out``; ``work`` is for resuming.

    Raises BadModel for a start that is no BERT, BadData for data or settings that can't be used or an ``out`` that is
    there already, SetupError for a full disk.
    """
    start = Checkpoint.load(Path(recipe.checked().start))
    learnt = {entry.name: _examples(entry.train, entry.kind) for entry in recipe.task}
    dev = {entry.name: _examples(entry.dev, entry.kind) for entry in recipe.task if entry.dev}
    tasks = TaskSet(
        recipe.form, tuple(_task(entry, [*learnt[entry.name], *dev.get(entry.name, ())]) for entry in recipe.task)
    )
    tokenizer = Tokenizer.load(start.folder)
    with written_atomically(out) as folder:
        loop.sow(recipe.schedule.seed)
        network = load_network(start, tasks)
        rows = [
            row
            for (text, question), labelled in joined(learnt).items()
            for row in task_rows(tasks, text, question, labelled, tokenizer, recipe.max_row)
        ]
        task = MultitaskTask(network, rows, {entry.name: entry.weight for entry in recipe.task})
        last = loop.train(task, recipe.schedule, work, _identity(recipe), report)
        write_network(network, start, folder / CHECKPOINT)
        step = cards.CardStep("train multitask", {**asdict(recipe), "steps": last.steps, "loss": last.loss})
        cards.derive(start.folder, folder / CHECKPOINT, step)
        quantize(folder / CHECKPOINT, folder / INT8)
        measured = scores.measure(folder / INT8, dev) if dev else {}
    return Report({name: len(some) for name, some in learnt.items()}, len(rows), last.steps, last.loss, measured)


def _examples(files: Sequence[str], kind: str) -> list[lines.Example]:
    return [one for name in files for one in lines.read(Path(name), kind)]


def _task(entry: TaskEntry, examples: Sequence[lines.Example]) -> Task:
    """A task with the labels of its examples, in the order of the alphabet."""
    labels = {SPAN: (), ANSWERABLE: (NO, YES), TEXT: sorted({one.label for one in examples})}.get(entry.kind)
    if labels is None:
        labels = [OUTSIDE, *sorted({mark[2] for one in examples for mark in one.marks} - {OUTSIDE})]
    return Task(entry.name, entry.kind, tuple(labels))


def load_network(start: Checkpoint, tasks: TaskSet) -> MultitaskNetwork:
    """A network with a checkpoint's encoder and those heads that it has in the same shape; the others are fresh."""
    network = MultitaskNetwork(Sizes.of(start.config, start.weights), tasks)
    load_encoder(network.encoder, start.weights)
    with torch.no_grad():
        for name, parameter in network.head_tensors().items():
            if name in start.weights and start.weights[name].shape == parameter.shape:
                parameter.copy_(torch.from_numpy(start.weights[name]))
    return network


def write_network(network: MultitaskNetwork, start: Checkpoint, out: Path) -> None:
    """Write a network's checkpoint, whose ``config.json`` names its tasks."""
    out.mkdir(parents=True)
    heads = {name: value.detach().cpu().clone() for name, value in network.head_tensors().items()}
    save_file({**tensors(network.encoder), **heads}, out / WEIGHTS_FILE, {"format": "pt"})
    config: dict[str, Any] = {**start.config, **config_of(network.encoder.sizes), SETTING: network.tasks.as_json()}
    if SPAN not in [task.kind for task in network.tasks.tasks]:
        config["architectures"] = ["BertModel"]
    (out / CONFIG_FILE).write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")
    shutil.copyfile(start.folder / TOKENIZER_FILE, out / TOKENIZER_FILE)


def _identity(recipe: MultitaskRecipe) -> dict[str, Any]:
    files = {name: sha256(Path(name)) for entry in recipe.task for name in (*entry.train, *entry.dev)}
    return {"recipe": asdict(recipe), "files": files, "start": sha256(Path(recipe.start) / WEIGHTS_FILE)}
