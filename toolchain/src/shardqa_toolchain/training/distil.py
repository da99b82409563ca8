"""Distillation: a reader learns from what larger ones say, beside what the data says.

The loss is ``(1 - soft) * hard + soft * T^2 * KL(teacher / T || student / T)`` over start and end (Hinton et al. 2015,
section 2), and over evidence and relevance where the student and all teachers have these outputs. Several teachers are
an ensemble: their probabilities are averaged.
"""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from shardqa.errors import BadData
from shardqa.models.shipped import sha256
from shardqa.models.tokenizer import TOKENIZER_FILE, Tokenizer
from shardqa_toolchain import cards
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
from shardqa_toolchain.training.network import MASKED, ReaderLogits, SpanReader
from shardqa_toolchain.training.recipe import Recipe, Teaching
from shardqa_toolchain.training.saved import WEIGHTS_FILE, load_reader, write_checkpoint
from shardqa_toolchain.training.spans import SpanTask
from shardqa_toolchain.training.teacher_logits import TeacherLogits

SPAN_CHANNELS, ALL_CHANNELS = 2, 4  # logits of a token: start and end; these, evidence and the row's relevance


@dataclass(slots=True)
class DistilTask(SpanTask):
    """Learn spans from labels and from teachers; `network` is the student's reader."""

    teachers: list[SpanReader]
    teaching: Teaching
    store: TeacherLogits | None = None

    def batch_loss(self, batch: LearningBatch, device: torch.device) -> Tensor:
        ids, mask, types = (
            torch.from_numpy(value).to(device)
            for value in (batch.input_ids, batch.attention_mask, batch.token_type_ids)
        )
        logits = readable(self.network.logits(self.network.encoder(ids, mask, types)[-1]), types)
        if self.store is not None:
            targets = self._stored_logits(self.store, batch, device)
        else:
            with torch.no_grad():
                targets = self._teachers_logits(ids, mask, types)
        teaching = self.teaching
        untaught = 1 - teaching.soft if self.channels > SPAN_CHANNELS else 1.0
        loss = (1 - teaching.soft) * span_loss(logits.spans, batch, device)
        loss = loss + untaught * sentence_loss(logits, batch, device)
        learnt = stacked(logits)[: self.channels]
        return loss + teaching.soft * soft_loss(learnt, targets, teaching.temperature, types * mask)

    @property
    def channels(self) -> int:
        """Logits of a token that are compared."""
        return channels_of([self.network, *self.teachers])

    def _teachers_logits(self, ids: Tensor, mask: Tensor, types: Tensor) -> list[Tensor]:
        """Returns each teacher's logits, [channels, batch, tokens]."""
        return [
            stacked(readable(teacher.logits(teacher.encoder(ids, mask, types)[-1]), types))[: self.channels]
            for teacher in (teacher.to(ids.device) for teacher in self.teachers)
        ]

    def _stored_logits(self, store: TeacherLogits, batch: LearningBatch, device: torch.device) -> list[Tensor]:
        """Returns each teacher's logits; teachers read those rows alone that they have not read before."""
        lengths = batch.attention_mask.sum(axis=1).tolist()
        rows = [ids[:length] for ids, length in zip(batch.input_ids, lengths, strict=True)]
        logits_of = [store.get(row) for row in rows]
        missing = [line for line, logits in enumerate(logits_of) if logits is None]
        if missing:
            tensors = (batch.input_ids, batch.attention_mask, batch.token_type_ids)
            with torch.no_grad():
                outputs = self._teachers_logits(*(torch.from_numpy(one[missing]).to(device) for one in tensors))
            fresh = torch.stack(outputs).cpu().numpy()
            for place, line in enumerate(missing):
                logits_of[line] = store.put(rows[line], fresh[:, :, place, : lengths[line]])
        whole = np.full((len(self.teachers), self.channels, *batch.input_ids.shape), MASKED, np.float32)
        for line, logits in enumerate(logits_of):
            whole[:, :, line, : lengths[line]] = logits
        return list(torch.from_numpy(whole).to(device))


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
    target = torch.stack([(one[:SPAN_CHANNELS] / temperature).softmax(-1) for one in teachers]).mean(0)
    learnt = (logits[:SPAN_CHANNELS] / temperature).log_softmax(-1)
    apart = functional.kl_div(learnt, target, reduction="none").sum(-1).mean()
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

    Raises BadData, BadModel, SetupError as `qa.train` does.
    """
    teaching = recipe.teaching.checked()
    folders = [Path(name) for name in teaching.teachers]
    origin = Path(recipe.start)
    _same_words([*folders, origin])
    with written_atomically(out) as folder:
        loop.sow(recipe.schedule.seed)
        teachers = [load_reader(one).eval() for one in folders]
        student = load_reader(origin, recipe.evidence)
        data = prepare(recipe.data, Tokenizer.load(origin))
        task = distil_task(student, teachers, data, recipe)
        with _storing(teaching, folders, task.channels) as task.store:
            last = loop.train(task, recipe.schedule, work, _identity(recipe, folders), report)
        write_checkpoint(student, origin, folder)
        outcome = qa.reported(data, last, task)
        cards.derive(origin, folder, qa.step("distil", recipe, outcome))
    return outcome


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
    own = base.network, base.rows, base.negatives, base.data, base.seed, base.held_out
    return DistilTask(*own, list(teachers), recipe.teaching)


def _same_words(folders: Sequence[Path]) -> None:
    """Raises BadModel unless teachers and student cut text alike: else logits would be of other tokens."""
    for folder in folders[1:]:
        if sha256(folder / TOKENIZER_FILE) != sha256(folders[0] / TOKENIZER_FILE):
            raise BadData(
                f"{folder} has another {TOKENIZER_FILE} than {folders[0]}; teachers and student must share one"
            )


def _identity(recipe: Recipe, teachers: Sequence[Path]) -> dict[str, Any]:
    files = {name: sha256(Path(name)) for name in recipe.data.train}
    starts = [*teachers, Path(recipe.start)]
    return {"recipe": qa.changed(recipe), "files": files, "starts": [sha256(one / WEIGHTS_FILE) for one in starts]}
