"""Several tasks on one encoder: data prepared, trained, written as a checkpoint and as ONNX, measured task by task."""

import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor

from shardqa.errors import BadData, BadModel
from shardqa.models.shipped import sha256
from shardqa.models.tokenizer import TOKENIZER_FILE, Tokenizer
from shardqa_toolchain import cards
from shardqa_toolchain.conversion.checkpoint import Checkpoint
from shardqa_toolchain.conversion.export import export
from shardqa_toolchain.conversion.quantize import quantize
from shardqa_toolchain.conversion.verify import Verdict
from shardqa_toolchain.faults import Fault
from shardqa_toolchain.folders import written_atomically
from shardqa_toolchain.multitask import lines
from shardqa_toolchain.multitask.lines import (
    LineForm,
    SequenceLabel,
    TaskExample,
    Texts,
    WordLabels,
)
from shardqa_toolchain.multitask.scores import TaskScores, measure
from shardqa_toolchain.multitask.session import MultitaskSession
from shardqa_toolchain.multitask.tasks import CONTROL, OUTSIDE, SETTING, Task, TaskSet
from shardqa_toolchain.training import curves, loop
from shardqa_toolchain.training.data import HELD_OUT_ROWS
from shardqa_toolchain.training.heads import MultitaskNetwork, MultitaskTask
from shardqa_toolchain.training.multitask_recipe import MultitaskRecipe
from shardqa_toolchain.training.network import Sizes, load_encoder, tensors
from shardqa_toolchain.training.qa import PICTURE
from shardqa_toolchain.training.saved import CONFIG_FILE, WEIGHTS_FILE, config_of
from shardqa_toolchain.training.targets import task_rows

CHECKPOINT_FOLDER = "checkpoint"

FLOAT32, INT8 = PRECISIONS = ("float32", "int8")

CONVERSIONS: Mapping[str, Callable[[Path, Path], Verdict]] = {FLOAT32: export, INT8: quantize}

UNUSED_TOKENS = 1000  # BERT's vocabularies have fewer free entries, [unused0] or [unused1] onwards


@dataclass(frozen=True, slots=True)
class PreparedTasks:
    """Data as a run takes it; examples by the tasks' names."""

    tasks: TaskSet
    learnt: Mapping[str, Sequence[TaskExample]]
    dev: Mapping[str, Sequence[TaskExample]]  # of the tasks that are measured
    faults: tuple[Fault, ...]


@dataclass(frozen=True, slots=True)
class MultitaskReport:
    examples: Mapping[str, int]  # learnt from, by task
    rows: int  # that carry them
    faults: tuple[str, ...]  # examples left out, each with its reason
    steps: int
    loss: float  # mean over the last steps: the tasks' cross entropies, in nats, summed by weight
    scores: Mapping[str, Mapping[str, TaskScores]]  # by precision and task


def train(
    recipe: MultitaskRecipe,
    out: Path,
    work: Path,
    report: Callable[[loop.Progress], None] = lambda progress: None,
    precisions: Sequence[str] = PRECISIONS,
    threads: int = 1,
) -> MultitaskReport:
    """Make a network for several tasks as the recipe says; ``work`` holds what resuming needs.

    ``out`` gets a folder ``checkpoint`` and an ONNX folder for each of ``precisions``, each with a card that says every
    task's scores on its dev files; ``threads`` are those that measure. Raises BadModel for a start that is no BERT,
    BadData for data or settings that can't be used or an ``out`` that is there already, SetupError for a full disk.
    """
    start = Checkpoint.load(Path(recipe.checked().start))
    with written_atomically(out) as folder:
        prepared = prepare(recipe, Tokenizer.load(start.folder))
        loop.sow(recipe.schedule.seed)
        network = load_network(start, prepared.tasks, recipe.dropout)
        before = known_network(start, prepared.tasks) if recipe.keep else None
        task = multitask_task(network, prepared, recipe, before)
        shares = dict.fromkeys(fresh_heads(network, start), recipe.fresh_rate)
        last = loop.train(task, recipe.schedule, work, identity(recipe), report, shares)
        checkpoint = folder / CHECKPOINT_FOLDER
        write_network(network, start, checkpoint)
        step = cards.CardStep("train multitask", {**recipe.as_json(), "steps": last.steps, "loss": last.loss})
        cards.derive(start.folder, checkpoint, step)
        curves.draw(work / loop.LOG_FILE, checkpoint / PICTURE)
        scores = {one: convert(checkpoint, folder / one, one, prepared.dev, threads) for one in precisions}
    counts = {name: len(found) for name, found in prepared.learnt.items()}
    faults = tuple(f"{fault.where}: {fault.what}" for fault in prepared.faults)
    return MultitaskReport(counts, len(task.rows), faults, last.steps, last.loss, scores)


def prepare(recipe: MultitaskRecipe, tokenizer: Tokenizer) -> PreparedTasks:
    """Read and check every task's files.

    Raises BadData as `lines.read` does, BadModel when the vocabulary has too few free tokens.
    """
    texts = Texts(tokenizer)
    learnt: dict[str, list[TaskExample]] = {}
    dev: dict[str, list[TaskExample]] = {}
    faults: list[Fault] = []
    tasks: list[Task] = []
    controls = control_tokens(tokenizer, len(recipe.task)) if recipe.form == CONTROL else [None] * len(recipe.task)
    for entry, control in zip(recipe.task, controls, strict=True):
        form = LineForm(entry.kind, entry.scheme, entry.labels)
        learnt[entry.name], wrong = lines.read(_paths(entry.train), form, texts, recipe.skip_faulty)
        faults += wrong
        labels = entry.labels or labels_of(form, learnt[entry.name])
        known = LineForm(entry.kind, entry.scheme, labels)
        if entry.dev:
            dev[entry.name], wrong = lines.read(_paths(entry.dev), known, texts, recipe.skip_faulty)
            faults += wrong
        tasks.append(Task(entry.name, entry.kind, known.known, entry.scheme, control))
    return PreparedTasks(TaskSet(recipe.form, tuple(tasks)), learnt, dev, tuple(faults))


def _paths(names: Sequence[str]) -> list[Path]:
    return [Path(name) for name in names]


def labels_of(form: LineForm, examples: Sequence[TaskExample]) -> tuple[str, ...]:
    """The labels that examples have, in the order of the alphabet; in the scheme bio the types of entities."""
    labels: set[str] = set()
    for example in examples:
        if isinstance(example.label, SequenceLabel):
            labels.add(example.label.label)
        elif isinstance(example.label, WordLabels):
            labels |= set(example.label.labels)
    return tuple(sorted({label[2:] for label in labels if label != OUTSIDE} if form.is_bio else labels))


def control_tokens(tokenizer: Tokenizer, count: int) -> list[int]:
    """Returns ids of so many of the vocabulary's free entries; raises BadModel when there are fewer."""
    free = [number for n in range(UNUSED_TOKENS) if (number := tokenizer.id_of(f"[unused{n}]")) is not None]
    if len(free) < count:
        raise BadModel(
            f'the vocabulary has {len(free)} free entries ([unused…]), {count} tasks need one each; use form = "heads"'
        )
    return free[:count]


def multitask_task(
    network: MultitaskNetwork,
    prepared: PreparedTasks,
    recipe: MultitaskRecipe,
    before: MultitaskNetwork | None = None,
) -> MultitaskTask:
    """The task of learning all tasks from prepared data; ``before`` is whose answers the recipe wants to be kept."""
    rows = task_rows(prepared.tasks, prepared.learnt, recipe.max_row)
    held_out = task_rows(prepared.tasks, prepared.dev, recipe.max_row)
    held_out = held_out[:: max(1, -(-len(held_out) // HELD_OUT_ROWS))]
    weights = {entry.name: entry.weight for entry in recipe.task}
    return MultitaskTask(network, rows, weights, held_out, before, recipe.keep)


def load_network(start: Checkpoint, tasks: TaskSet, dropout: float) -> MultitaskNetwork:
    """A network with a checkpoint's encoder and span head; with all its heads if it was trained for the same tasks.

    Heads that it does not have are fresh. Raises BadModel when a tensor is missing or misshapen.
    """
    network = MultitaskNetwork(Sizes.of(start.config, start.weights), tasks, dropout)
    load_encoder(network.encoder, start.weights)
    with torch.no_grad():
        for name, parameter in _known_heads(network, start).items():
            parameter.copy_(torch.from_numpy(start.weights[name]))
    return network


def known_network(start: Checkpoint, tasks: TaskSet) -> MultitaskNetwork:
    """The start itself, with heads for those of the tasks that it knows; raises BadData when it knows none."""
    network = load_network(start, tasks, 0.0)
    fresh = {name.rsplit(".", 1)[0] for name in fresh_heads(network, start)}
    known = tuple(task for number, task in enumerate(tasks.tasks) if f"heads.{number}" not in fresh)
    if not known or (tasks.form == CONTROL and fresh):
        raise BadData("keep is above 0, but the start knows none of the tasks; leave it out, or take another start")
    return load_network(start, replace(tasks, tasks=known), 0.0).eval()


def fresh_heads(network: MultitaskNetwork, start: Checkpoint) -> list[str]:
    """Names of the network's parameters that `load_network` leaves as they were drawn."""
    known = {id(parameter) for parameter in _known_heads(network, start).values()}
    return [f"heads.{name}" for name, parameter in network.heads.named_parameters() if id(parameter) not in known]


def _known_heads(network: MultitaskNetwork, start: Checkpoint) -> dict[str, Tensor]:
    """The heads' tensors that the start holds, by their names in it: all if it was trained for the same tasks."""
    is_same = SETTING in start.config and TaskSet.of(start.config) == network.tasks
    return {
        name: parameter
        for name, parameter in network.head_tensors().items()
        if name in start.weights and (is_same or name.startswith("qa_outputs."))
    }


def write_network(network: MultitaskNetwork, start: Checkpoint, out: Path) -> None:
    """Write a network's checkpoint: transformers reads its encoder and, where they are alike, its heads."""
    out.mkdir(parents=True)
    heads = {name: value.detach().cpu().clone() for name, value in network.head_tensors().items()}
    save_file({**tensors(network.encoder), **heads}, out / WEIGHTS_FILE, {"format": "pt"})
    config: dict[str, Any] = {**start.config, **config_of(network.encoder.sizes), SETTING: network.tasks.as_json()}
    if network.tasks.form == CONTROL:
        names = dict(enumerate(network.tasks.union))
        config |= {"architectures": ["BertForTokenClassification"], "id2label": names}
        config["label2id"] = {label: place for place, label in names.items()}
    elif "qa_outputs.weight" not in heads:
        config["architectures"] = ["BertModel"]
    (out / CONFIG_FILE).write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")
    shutil.copyfile(start.folder / TOKENIZER_FILE, out / TOKENIZER_FILE)


def convert(
    checkpoint: Path, out: Path, precision: str, dev: Mapping[str, Sequence[TaskExample]], threads: int
) -> dict[str, TaskScores]:
    """Write the ONNX folder of a checkpoint, and measure it on every task; the scores go into its card."""
    CONVERSIONS[precision](checkpoint, out)
    scores = measure(MultitaskSession(out, threads), dev)
    card = cards.Card.load(out)
    for task, result in scores.items():
        for metric, value in result.scores.items():
            card = card.with_score(f"{task} dev", metric, value, f"{result.examples} examples")
    card.save(out)
    return scores


def identity(recipe: MultitaskRecipe) -> dict[str, Any]:
    """Returns what makes a run this one: its settings, and the content of data and start."""
    files = {name: sha256(Path(name)) for entry in recipe.task for name in (*entry.train, *entry.dev)}
    return {"recipe": recipe.as_json(), "files": files, "start": sha256(Path(recipe.start) / WEIGHTS_FILE)}
