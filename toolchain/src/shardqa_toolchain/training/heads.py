"""One encoder with a head for every task, or with one token classifier for all; and what each head's errors cost."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from shardqa_toolchain.conversion.heads import CLASSIFIER, head_tensor
from shardqa_toolchain.multitask.tasks import (
    ANSWERABLE,
    CONTROL,
    CONTROL_OUTPUT,
    SEQUENCE,
    SPAN,
    TOKENS,
    Task,
    TaskSet,
)
from shardqa_toolchain.training.batches import plan
from shardqa_toolchain.training.held_out import HELD_OUT_TOKENS, LOSS
from shardqa_toolchain.training.losses import barred
from shardqa_toolchain.training.network import Encoder, Sizes, initialise
from shardqa_toolchain.training.targets import IGNORED, TaskBatch, TaskRow, collate


class MultitaskNetwork(nn.Module):
    """A BERT that does several tasks; its outputs have the names and shapes of the ONNX network's."""

    def __init__(self, sizes: Sizes, tasks: TaskSet, dropout: float = 0.0) -> None:
        super().__init__()
        self.tasks = tasks
        self.encoder = Encoder(sizes, dropout)
        self.heads = nn.ModuleList(nn.Linear(sizes.hidden, width) for width in _widths(tasks))
        self.apply(initialise)

    def forward(self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor) -> dict[str, Tensor]:
        """Logits by output; inputs are int64 [batch, tokens]. See Task.outputs for the shapes."""
        hidden: Tensor = self.encoder(input_ids, attention_mask, token_type_ids)[-1]
        if self.tasks.form == CONTROL:
            return {CONTROL_OUTPUT: self.heads[0](hidden)}
        outputs: dict[str, Tensor] = {}
        for task, head in zip(self.tasks.tasks, self.heads, strict=True):
            logits = head(hidden[:, 0] if task.kind in (ANSWERABLE, SEQUENCE) else hidden)
            parts = logits.unbind(-1) if task.kind in (SPAN, ANSWERABLE) else (logits,)
            outputs |= zip(task.outputs, parts, strict=True)
        return outputs

    def head_tensors(self) -> dict[str, Tensor]:
        """The heads' weights by their names in a checkpoint; setting one sets the network's."""
        names = [CLASSIFIER] if self.tasks.form == CONTROL else [head_tensor(task) for task in self.tasks.tasks]
        return {
            f"{name}.{part}": value
            for name, head in zip(names, self.heads, strict=True)
            for part, value in head.named_parameters()
        }


def _widths(tasks: TaskSet) -> list[int]:
    """Logits that each head gives a token."""
    if tasks.form == CONTROL:
        return [len(tasks.union)]
    return [{SPAN: 2, ANSWERABLE: 1}.get(task.kind, len(task.labels)) for task in tasks.tasks]


@dataclass(slots=True)
class MultitaskTask:
    """Learn several tasks from rows that carry the labels of one or more of them."""

    network: MultitaskNetwork
    rows: Sequence[TaskRow]
    weights: Mapping[str, float]  # of the tasks' losses
    held_out: Sequence[TaskRow]
    before: MultitaskNetwork | None = None  # what the start says, for the tasks that it knew; it does not learn
    keep: float = 0.0  # weight of saying the same

    @property
    def trained(self) -> nn.Module:
        return self.network

    def lengths(self, passed: int) -> Sequence[int]:
        return [len(row) for row in self.rows]

    def loss(self, passed: int, rows: Sequence[int], device: torch.device) -> Tensor:
        return self.batch_loss(collate([self.rows[row] for row in rows]), device)

    def batch_loss(self, batch: TaskBatch, device: torch.device) -> Tensor:
        """The mean over rows of the weighted sum of the row's losses, a row's loss being the mean over its labels.

        So a task counts as often as it has rows: tasks are mixed in proportion to their data and weights. With ``keep``
        comes what leaving the start's answers costs (Li and Hoiem 2016, equation 2, at temperature 1).
        """
        ids, mask, types = (
            torch.from_numpy(value).to(device)
            for value in (batch.input_ids, batch.attention_mask, batch.token_type_ids)
        )
        outputs = self.network(ids, mask, types)
        total = torch.zeros((), device=device)
        for task in self.network.tasks.tasks:
            if task.name in batch.targets:
                logits = places(self.network.tasks.form, task, outputs, types)
                losses = row_losses(logits, torch.from_numpy(batch.targets[task.name]).to(device))
                total = total + self.weights[task.name] * losses.mean()
        if self.before is not None:
            with torch.no_grad():
                said = self.before.to(device)(ids, mask, types)
            total = total + self.keep * departure(self.before.tasks, outputs, said, mask, types)
        return total

    def held_out_figures(self, device: torch.device) -> dict[str, float]:
        if not self.held_out:
            return {}
        total = 0.0
        for members in plan([len(row) for row in self.held_out], HELD_OUT_TOKENS, 0, 0):
            total += len(members) * float(self.batch_loss(collate([self.held_out[row] for row in members]), device))
        return {LOSS: total / len(self.held_out)}


def places(form: str, task: Task, outputs: Mapping[str, Tensor], types: Tensor) -> Tensor:
    """A task's logits as choices: float32 [rows, places, classes], one place for each number of TaskRow.targets."""
    if form == CONTROL:
        return outputs[CONTROL_OUTPUT].float()
    logits = [outputs[name].float() for name in task.outputs]
    if task.kind == SPAN:
        return torch.stack(logits, dim=1) + barred(types).transpose(1, 2)
    if task.kind == ANSWERABLE:
        # A sigmoid is a softmax with the other logit held at 0.
        return torch.stack([torch.zeros_like(logits[0]), logits[0]], dim=-1)[:, None]
    return logits[0][:, None] if task.kind == SEQUENCE else logits[0]


def departure(
    known: TaskSet, outputs: Mapping[str, Tensor], before: Mapping[str, Tensor], mask: Tensor, types: Tensor
) -> Tensor:
    """Returns how far known tasks have gone from ``before``: the mean over rows, summed over tasks, in nats."""
    total = torch.zeros((), device=mask.device)
    for task in known.tasks[:1] if known.form == CONTROL else known.tasks:  # there, one classifier is all tasks'
        now, then = places(known.form, task, outputs, types), places(known.form, task, before, types)
        if known.form == CONTROL or task.kind == TOKENS:
            now, then = now[mask == 1], then[mask == 1]
        total = total + distance(now, then)
    return total


def distance(logits: Tensor, targets: Tensor) -> Tensor:
    """Returns the mean divergence of choices from their targets, KL(targets || logits), both [..., classes]."""
    own, target = functional.log_softmax(logits, dim=-1), functional.log_softmax(targets, dim=-1)
    return (target.exp() * (target - own)).sum(-1).mean()


def row_losses(logits: Tensor, targets: Tensor) -> Tensor:
    """Each row's mean cross entropy over its labelled places, 0 where it has none; [rows, places, classes] and [rows,
    places] give [rows]."""
    losses = functional.cross_entropy(logits.transpose(1, 2), targets, ignore_index=IGNORED, reduction="none")
    labelled = (targets != IGNORED).sum(1).clamp(min=1)
    return losses.sum(1) / labelled
