"""Distillation: a smaller reader learns from what larger ones say, beside what the data says.

The loss is ``(1 - soft) * hard + soft * T^2 * KL(teacher / T || student / T)`` over start and end (Hinton et al. 2015,
section 2), and over evidence and relevance where the student and all teachers have these outputs; plus ``hidden`` times
the mean squared distance of paired layers' outputs after a learnt projection (Jiao et al. 2020, equation 8). Several
teachers are an ensemble: their probabilities are averaged.
"""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from shardqa.errors import BadData
from shardqa.models.shipped import sha256
from shardqa.models.tokenizer import TOKENIZER_FILE, Tokenizer
from shardqa_toolchain.folders import written_atomically
from shardqa_toolchain.training import loop, qa
from shardqa_toolchain.training.batches import LearningBatch
from shardqa_toolchain.training.data import PreparedData, prepare
from shardqa_toolchain.training.losses import (
    EVIDENCE_WEIGHT,
    RELEVANCE_WEIGHT,
    readable,
    sentence_loss,
    span_loss,
)
from shardqa_toolchain.training.network import MASKED, Layer, ReaderLogits, Sizes, SpanReader
from shardqa_toolchain.training.recipe import Recipe, Teaching
from shardqa_toolchain.training.saved import WEIGHTS_FILE, load_reader, write_checkpoint
from shardqa_toolchain.training.slimming import KeptLayer, slimmed
from shardqa_toolchain.training.spans import SpanTask
from shardqa_toolchain.training.teacher_logits import TeacherLogits

SPAN_CHANNELS, ALL_CHANNELS = 2, 4  # logits of a token: start and end; these, evidence and the row's relevance


class Student(nn.Module):
    """A reader with the projections that compare its hidden units with the teacher's."""

    def __init__(self, reader: SpanReader, taught: int, pairs: Sequence[tuple[int, int]]) -> None:
        super().__init__()
        self.reader = reader
        self.pairs = tuple(pairs)
        self.projections = nn.ModuleList(nn.Linear(reader.encoder.sizes.hidden, taught, bias=False) for _ in pairs)
        if reader.encoder.sizes.hidden == taught:
            for projection in self.projections:
                nn.init.eye_(projection.get_parameter("weight"))


@dataclass(slots=True)
class DistilTask(SpanTask):
    """Learn spans from labels and from teachers; `network` is the student's reader."""

    student: Student
    teachers: list[SpanReader]
    teaching: Teaching
    store: TeacherLogits | None = None

    @property
    def trained(self) -> nn.Module:
        return self.student

    def batch_loss(self, batch: LearningBatch, device: torch.device) -> Tensor:
        ids, mask, types = (
            torch.from_numpy(value).to(device)
            for value in (batch.input_ids, batch.attention_mask, batch.token_type_ids)
        )
        hidden = self.network.encoder(ids, mask, types)
        logits = readable(self.network.logits(hidden[-1]), types)
        if self.store is not None:
            layers: list[list[Tensor]] = []
            taught = self._stored_logits(self.store, batch, device)
        else:
            with torch.no_grad():
                layers, taught = self._teachers_outputs(ids, mask, types)
        teaching = self.teaching
        untaught = 1 - teaching.soft if self.channels > SPAN_CHANNELS else 1.0
        loss = (1 - teaching.soft) * span_loss(logits.spans, batch, device)
        loss = loss + untaught * sentence_loss(logits, batch, device)
        learnt = stacked(logits)[: self.channels]
        loss = loss + teaching.soft * soft_loss(learnt, taught, teaching.temperature, types * mask)
        if teaching.hidden:
            loss = loss + teaching.hidden * self._hidden_loss(hidden, layers[0], mask)
        return loss

    @property
    def channels(self) -> int:
        """Logits of a token that are compared."""
        return channels_of([self.network, *self.teachers])

    def _teachers_outputs(self, ids: Tensor, mask: Tensor, types: Tensor) -> tuple[list[list[Tensor]], list[Tensor]]:
        """Returns each teacher's outputs of all layers, and its logits [channels, batch, tokens]."""
        layers = [teacher.to(ids.device).encoder(ids, mask, types) for teacher in self.teachers]
        logits = [
            stacked(readable(teacher.logits(outputs[-1]), types))[: self.channels]
            for teacher, outputs in zip(self.teachers, layers, strict=True)
        ]
        return layers, logits

    def _stored_logits(self, store: TeacherLogits, batch: LearningBatch, device: torch.device) -> list[Tensor]:
        """Returns each teacher's logits; teachers read those rows alone that they have not read before."""
        lengths = batch.attention_mask.sum(axis=1).tolist()
        rows = [ids[:length] for ids, length in zip(batch.input_ids, lengths, strict=True)]
        stored = [store.get(row) for row in rows]
        missing = [line for line, logits in enumerate(stored) if logits is None]
        if missing:
            tensors = (batch.input_ids, batch.attention_mask, batch.token_type_ids)
            with torch.no_grad():
                _, outputs = self._teachers_outputs(*(torch.from_numpy(one[missing]).to(device) for one in tensors))
            fresh = torch.stack(outputs).cpu().numpy()
            for place, line in enumerate(missing):
                stored[line] = store.put(rows[line], fresh[:, :, place, : lengths[line]])
        whole = np.full((len(self.teachers), self.channels, *batch.input_ids.shape), MASKED, np.float32)
        for line, logits in enumerate(stored):
            whole[:, :, line, : lengths[line]] = logits
        return list(torch.from_numpy(whole).to(device))

    def _hidden_loss(self, learnt: Sequence[Tensor], taught: Sequence[Tensor], mask: Tensor) -> Tensor:
        real = mask.bool()
        losses = [
            functional.mse_loss(projection(learnt[own])[real].float(), taught[theirs][real].float())
            for (own, theirs), projection in zip(self.student.pairs, self.student.projections, strict=True)
        ]
        return torch.stack(losses).mean()


def channels_of(readers: Sequence[SpanReader]) -> int:
    """Returns the number of logits of a token that all of them have."""
    return ALL_CHANNELS if all(reader.evidence is not None for reader in readers) else SPAN_CHANNELS


def stacked(logits: ReaderLogits) -> Tensor:
    """Start, end and, where there are such, evidence and the row's relevance: [channels, batch, tokens]."""
    spans, evidence, relevance = logits
    if evidence is None or relevance is None:
        return spans.permute(2, 0, 1)
    return torch.cat([spans.permute(2, 0, 1), torch.stack([evidence, relevance[:, None].expand_as(evidence)])])


def soft_loss(logits: Tensor, teachers: Sequence[Tensor], temperature: float, passage: Tensor) -> Tensor:
    """Returns ``T^2 KL`` of the student's logits, as `stacked`, from the teachers' mean probabilities.

    Evidence counts at the tokens where ``passage``, [batch, tokens], is 1; each output has its weight of `losses`.
    """
    taught = torch.stack([(one[:SPAN_CHANNELS] / temperature).softmax(-1) for one in teachers]).mean(0)
    learnt = (logits[:SPAN_CHANNELS] / temperature).log_softmax(-1)
    apart = functional.kl_div(learnt, taught, reduction="none").sum(-1).mean()
    if len(logits) > SPAN_CHANNELS:
        shares = passage / passage.sum(1, keepdim=True).clamp(min=1)
        sides = torch.stack([(one[SPAN_CHANNELS:] / temperature).sigmoid() for one in teachers]).mean(0)
        evidence, relevance = _binary_divergence(logits[SPAN_CHANNELS:] / temperature, sides)
        apart = apart + EVIDENCE_WEIGHT * (evidence * shares).sum(1).mean() + RELEVANCE_WEIGHT * relevance[:, 0].mean()
    return temperature**2 * apart


def _binary_divergence(logits: Tensor, taught: Tensor) -> Tensor:
    """KL of each log-odds from a probability."""
    pairs = ((functional.logsigmoid(logits), taught), (functional.logsigmoid(-logits), 1 - taught))
    return torch.stack([functional.kl_div(learnt, side, reduction="none") for learnt, side in pairs]).sum(0)


def distil(
    recipe: Recipe, out: Path, work: Path, report: Callable[[loop.Progress], None] = lambda progress: None
) -> qa.Report:
    """Teach a student as the recipe says and write its checkpoint to ``out``.

    The student is the recipe's ``start``; without one, evenly spread layers of the first teacher, and of its hidden
    units those with the most energy. Raises BadData, BadModel, SetupError as `qa.train` does.
    """
    teaching = recipe.teaching.checked()
    if recipe.evidence_only:
        raise BadData("evidence_only is for `train qa`: teachers teach spans; leave it out")
    folders = [Path(name) for name in teaching.teachers]
    _same_words([*folders, *([Path(recipe.start)] if recipe.start else [])])
    origin = Path(recipe.start) if recipe.start else folders[0]
    with written_atomically(out) as folder:
        loop.sow(recipe.schedule.seed)
        teachers = [load_reader(one).eval() for one in folders]
        student = (
            load_reader(origin, recipe.dropout, recipe.evidence)
            if recipe.start
            else cut_from(teachers[0], teaching, recipe.dropout)
        )
        prepared = prepare(recipe.data, Tokenizer.load(origin))
        task = distil_task(student, teachers, prepared, recipe)
        with _storing(teaching, folders, task.channels) as task.store:
            last = loop.train(task, recipe.schedule, work, _identity(recipe, folders), report)
        write_checkpoint(student, origin, folder)
        found = qa.reported(prepared, last, task)
        qa.finish(folder, origin, work, qa.step("distil", recipe, found))
    return found


@contextlib.contextmanager
def _storing(teaching: Teaching, teachers: Sequence[Path], channels: int) -> Iterator[TeacherLogits | None]:
    """Opens the store of the teachers' logits, if they are stored."""
    if not teaching.kept:
        yield None
        return
    digests = [sha256(one / WEIGHTS_FILE) for one in teachers]
    with contextlib.closing(TeacherLogits.open(Path(teaching.kept), digests, channels)) as store:
        yield store


def distil_task(
    student: SpanReader, teachers: Sequence[SpanReader], prepared: PreparedData, recipe: Recipe
) -> DistilTask:
    base = qa.span_task(student, prepared, recipe.data, recipe.schedule.seed)
    pairs = paired(len(student.encoder.layers), len(teachers[0].encoder.layers))
    pupil = Student(student, teachers[0].encoder.sizes.hidden, pairs)
    return DistilTask(
        base.network,
        base.rows,
        base.negatives,
        base.data,
        base.seed,
        base.held_out,
        pupil,
        list(teachers),
        recipe.teaching,
    )


def paired(own: int, taught: int) -> list[tuple[int, int]]:
    """The student's outputs with the teacher's they are to be like: embeddings first, the rest evenly, last to last."""
    return [(number, round(number * taught / own)) for number in range(own + 1)]


def cut_from(teacher: SpanReader, teaching: Teaching, dropout: float) -> SpanReader:
    """A student made of the teacher's own parts."""
    sizes = teacher.encoder.sizes
    layers, hidden = teaching.layers or len(sizes.layers), teaching.units or sizes.hidden
    if layers > len(sizes.layers) or hidden > sizes.hidden:
        raise BadData(
            f"a student of {layers} layers and {hidden} hidden units can't be cut from a teacher of "
            f"{len(sizes.layers)} and {sizes.hidden}; give smaller ones, or a start"
        )
    if hidden % sizes.head_size:
        raise BadData(f"{hidden} hidden units are no multiple of a head's {sizes.head_size}; give one that is")
    numbers = [theirs - 1 for _, theirs in paired(layers, len(sizes.layers))[1:]]
    kept = [_kept(teacher, number, hidden / sizes.hidden, sizes) for number in numbers]
    student = slimmed(teacher, kept, _strongest_units(teacher, hidden))
    student.encoder.dropout = dropout
    return student


def _kept(teacher: SpanReader, number: int, share: float, sizes: Sizes) -> KeptLayer:
    """A layer's strongest heads and columns, in the student's proportion."""
    layer = teacher.encoder.layers[number]
    assert isinstance(layer, Layer)
    size = sizes.layers[number]
    heads = layer.mix.weight.detach().square().sum(0).view(layer.heads, layer.head_size).sum(1)
    columns = layer.narrow.weight.detach().square().sum(0)
    return KeptLayer(
        number, _top(heads, max(1, round(share * size.heads))), _top(columns, max(1, round(share * size.width)))
    )


def _strongest_units(teacher: SpanReader, hidden: int) -> tuple[int, ...]:
    return _top(teacher.encoder.embeddings.word_embeddings.weight.detach().square().sum(0), hidden)


def _top(scores: Tensor, count: int) -> tuple[int, ...]:
    return tuple(sorted(scores.topk(count).indices.tolist()))


def _same_words(folders: Sequence[Path]) -> None:
    """Teachers and student must cut text alike, or logits would be of other tokens."""
    for folder in folders[1:]:
        if sha256(folder / TOKENIZER_FILE) != sha256(folders[0] / TOKENIZER_FILE):
            raise BadData(
                f"{folder} has another {TOKENIZER_FILE} than {folders[0]}; teachers and student must share one"
            )


def _identity(recipe: Recipe, teachers: Sequence[Path]) -> dict[str, Any]:
    files = {name: sha256(Path(name)) for name in recipe.data.train}
    starts = [*teachers, *([Path(recipe.start)] if recipe.start else [])]
    return {"recipe": qa.changed(recipe), "files": files, "starts": [sha256(one / WEIGHTS_FILE) for one in starts]}
