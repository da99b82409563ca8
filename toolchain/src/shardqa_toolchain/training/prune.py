"""Pruning: weights set to zero (unstructured), or heads and feed-forward columns taken away (structured).

Unstructured pruning is magnitude pruning (Han et al. 2015): the smallest weights of each matrix become zero. Dense
kernels compute with zeros as with anything else, so it saves nothing but what a compressed file saves; the report says
so. Structured pruning removes the heads and columns that the loss would miss least, by first-order Taylor expansion
(Michel et al. 2019, equation 2; Molchanov et al. 2017): |weight x gradient| summed over a group, over a sample of
questions. Without a sample, by the group's norm.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from shardqa.errors import BadData
from shardqa.models.tokenizer import Tokenizer
from shardqa_toolchain import cards
from shardqa_toolchain.folders import written_atomically
from shardqa_toolchain.training import examples, loop
from shardqa_toolchain.training.batches import LearningRow, collate, plan
from shardqa_toolchain.training.losses import reader_logits, reader_loss
from shardqa_toolchain.training.network import Layer, SpanReader
from shardqa_toolchain.training.saved import load_reader, write_checkpoint
from shardqa_toolchain.training.slimming import KeptLayer, slimmed
from shardqa_toolchain.training.spans import learning_rows

COLUMN_STEP = 32  # widths of the feed-forward are multiples of this: kernels pad narrower ones

SAMPLE_TOKENS = 4096  # of a batch in which importance is measured


@dataclass(frozen=True, slots=True)
class Pruned:
    form: str  # "structured" or "unstructured"
    parameters_before: int
    parameters_after: int  # those that are left, or are not zero
    layers: tuple[tuple[int, int], ...] = ()  # heads and columns of each layer that is left
    sparsity: dict[str, float] = field(default_factory=dict)  # share of zeros of each matrix, 0 to 1


def prune_weights(source: Path, out: Path, share: float) -> Pruned:
    """Set the smallest ``share`` (0 to 1) of each encoder matrix to zero, and write the checkpoint; raises BadData."""
    _between("share", share)
    reader = load_reader(source)
    before = _parameters(reader)
    sparsity: dict[str, float] = {}
    with torch.no_grad():
        for name, value in reader.encoder.layers.named_parameters():
            if value.dim() == 2:
                _zero_smallest(value, share)
                sparsity[name] = float((value == 0).float().mean())
    zeros = sum(int((value == 0).sum()) for value in reader.encoder.layers.parameters() if value.dim() == 2)
    pruned = Pruned("unstructured", before, before - zeros, sparsity=sparsity)
    _write(reader, source, out, {"form": "unstructured", "share": share}, pruned)
    return pruned


def prune_structures(
    source: Path, out: Path, heads: float, columns: float, sample: Sequence[Path] = (), rows: int = 1024
) -> Pruned:
    """Remove the shares ``heads`` and ``columns`` (0 to 1) of the whole network's, and write the checkpoint.

    Importance is measured on ``rows`` rows of the SQuAD files in ``sample``, or by norm when there are none. Each layer
    keeps at least a head and COLUMN_STEP columns. Raises BadData, BadModel.
    """
    _between("heads", heads)
    _between("columns", columns)
    reader = load_reader(source)
    before = _parameters(reader)
    scores = _importance(reader, _sampled(sample, Tokenizer.load(source), rows) if sample else [])
    kept = chosen(scores, heads, columns)
    small = slimmed(reader, kept)
    layers = tuple((len(one.heads), len(one.columns)) for one in kept)
    pruned = Pruned("structured", before, _parameters(small), layers)
    settings = {"form": "structured", "heads": heads, "columns": columns, "sample": [path.name for path in sample]}
    _write(small, source, out, {**settings, "rows": rows if sample else 0}, pruned)
    return pruned


@dataclass(frozen=True, slots=True)
class Importance:
    """Importance of one layer's parts: what the loss would miss."""

    heads: Tensor  # [heads], 0 or more
    columns: Tensor  # [columns], 0 or more


def chosen(scores: Sequence[Importance], heads: float, columns: float) -> list[KeptLayer]:
    """The parts that stay when the least important shares of all heads and of all columns go."""
    head_line = _line([one.heads for one in scores], heads)
    column_line = _line([one.columns for one in scores], columns)
    layers = []
    for number, one in enumerate(scores):
        wanted = max(1, int((one.heads > head_line).sum()))
        width = int((one.columns > column_line).sum())
        width = min(len(one.columns), max(COLUMN_STEP, -(-width // COLUMN_STEP) * COLUMN_STEP))
        layers.append(KeptLayer(number, _largest(one.heads, wanted), _largest(one.columns, width)))
    return layers


def _line(scores: Sequence[Tensor], share: float) -> float:
    """The importance that the given share of all parts does not exceed; below all where the share is 0."""
    ordered = torch.cat(list(scores)).sort().values
    gone = int(share * len(ordered))
    return float(ordered[gone - 1]) if gone else -1.0


def _largest(scores: Tensor, count: int) -> tuple[int, ...]:
    return tuple(sorted(scores.topk(count).indices.tolist()))


def _importance(reader: SpanReader, rows: Sequence[LearningRow]) -> list[Importance]:
    """By Taylor expansion over rows, or by norm where there are none."""
    layers = [layer for layer in reader.encoder.layers if isinstance(layer, Layer)]
    if not rows:
        return [_grouped(layer, layer.mix.weight.detach() ** 2, layer.narrow.weight.detach() ** 2) for layer in layers]
    totals = [Importance(torch.zeros(layer.heads), torch.zeros(layer.narrow.in_features)) for layer in layers]
    for members in plan([len(row) for row in rows], SAMPLE_TOKENS, 0, 0):
        batch = collate([rows[member] for member in members])
        reader.zero_grad()
        with loop.precision(loop.CPU):
            loss = reader_loss(reader_logits(reader, batch, loop.CPU), batch, loop.CPU)
            loss.backward()  # type: ignore[no-untyped-call]
        for layer, total in zip(layers, totals, strict=True):
            assert layer.mix.weight.grad is not None
            assert layer.narrow.weight.grad is not None
            grouped = _grouped(
                layer,
                layer.mix.weight.detach() * layer.mix.weight.grad,
                layer.narrow.weight.detach() * layer.narrow.weight.grad,
            )
            total.heads.add_(grouped.heads.abs())
            total.columns.add_(grouped.columns.abs())
    return totals


def _grouped(layer: Layer, mix: Tensor, narrow: Tensor) -> Importance:
    """Sums over what each head and each column feeds: [hidden, inner] and [hidden, columns] to a number each."""
    return Importance(mix.sum(0).view(layer.heads, layer.head_size).sum(1), narrow.sum(0))


def _sampled(paths: Sequence[Path], tokenizer: Tokenizer, rows: int) -> list[LearningRow]:
    sources, _ = examples.read(paths, tokenizer)
    spread = sources[:: max(1, len(sources) // rows)][:rows]
    return [row for one in spread for row in learning_rows(one.example)]


def _zero_smallest(value: Tensor, share: float) -> None:
    """Set exactly the given share of a matrix's weights, the smallest by magnitude, to zero."""
    gone = int(share * value.numel())
    smallest = value.abs().flatten().topk(gone, largest=False).indices
    value.view(-1)[smallest] = 0


def _parameters(reader: SpanReader) -> int:
    return sum(value.numel() for value in reader.parameters())


def _between(name: str, share: float) -> None:
    if not 0 <= share < 1:
        raise BadData(f"{name} is {share}, 0 or more and below 1 is needed")


def _write(reader: SpanReader, source: Path, out: Path, settings: dict[str, Any], pruned: Pruned) -> None:
    with written_atomically(out) as folder:
        write_checkpoint(reader, source, folder)
        counts = {"parameters_before": pruned.parameters_before, "parameters_after": pruned.parameters_after}
        found = {"layers": [list(layer) for layer in pruned.layers], "sparsity": pruned.sparsity}
        cards.derive(source, folder, cards.CardStep("prune", {**settings, **counts, **found}))
