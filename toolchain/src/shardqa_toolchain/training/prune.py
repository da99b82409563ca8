"""Pruning: weights set to zero (unstructured), or heads and feed-forward columns taken away (structured).

Unstructured pruning is by magnitude (Han et al. 2015): the smallest weights of each matrix become zero. Dense kernels
compute with zeros as with anything else, so that it saves no time; the report shows it. Structured pruning removes the
heads and columns that the loss would miss least, by first-order Taylor expansion (Michel et al. 2019, equation 2):
|weight x gradient| summed over a group, over a sample of questions; without a sample, by the group's norm.
"""

import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from shardqa.errors import BadData, BadModel
from shardqa.models.tokenizer import Tokenizer
from shardqa_toolchain import cards
from shardqa_toolchain.conversion.checked import Check
from shardqa_toolchain.conversion.export import export
from shardqa_toolchain.folders import written_atomically
from shardqa_toolchain.measure import measure
from shardqa_toolchain.training import examples, loop
from shardqa_toolchain.training.batches import LearningRow, collate, plan
from shardqa_toolchain.training.losses import reader_logits, reader_loss
from shardqa_toolchain.training.network import Layer, LayerSize, SpanReader
from shardqa_toolchain.training.saved import load_reader, write_checkpoint
from shardqa_toolchain.training.spans import learning_rows

COLUMN_STEP = 32  # widths of the feed-forward are multiples of this: kernels pad narrower ones
SAMPLE_TOKENS = 4096  # of a batch in which importance is measured


@dataclass(frozen=True, slots=True)
class Pruned:
    parameters_before: int
    parameters_after: int  # those that are left, or are not zero
    layers: tuple[tuple[int, int], ...]  # heads and columns of each layer that is left
    zeros: float  # share of the layers' weights, 0 to 1


@dataclass(frozen=True, slots=True)
class Measured:
    """A checkpoint's reader as exported, float32."""

    zeros: float  # share of the layers' weights, 0 to 1
    f1: float  # percent
    milliseconds: float  # of a question, in the network


def prune_weights(source: Path, out: Path, share: float) -> Pruned:
    """Sets the smallest ``share`` (0 to 1) of each layer's matrices to zero, and writes the checkpoint.

    Raises BadData for a share out of range, BadModel for a source that is no reader.
    """
    reader = load_reader(source)
    before = _parameters(reader)
    _zero(reader, _between("--weights", share))
    return _write(reader, source, out, before, {"weights": share})


def prune_structures(
    source: Path, out: Path, heads: float, columns: float, sample: Sequence[Path] = (), rows: int = 1024
) -> Pruned:
    """Removes the shares ``heads`` and ``columns`` (0 to 1) of the whole network's, and writes the checkpoint.

    Importance is measured on ``rows`` questions of the SQuAD files in ``sample``, or by norm when there are none. Each
    layer keeps a head and COLUMN_STEP columns at least. Raises BadData, BadModel.
    """
    for name, share in (("--heads", heads), ("--columns", columns)):
        _between(name, share)
    reader = load_reader(source)
    if reader.encoder.sizes.buckets:
        raise BadModel(f"{source} has MPNet's relative places, which can't be cut; distil from it into a BERT")
    importance = _importance(reader, _sampled(sample, Tokenizer.load(source), rows) if sample else [])
    settings = {"heads": heads, "columns": columns, "sample": [path.name for path in sample]}
    return _write(slimmed(reader, chosen(importance, heads, columns)), source, out, _parameters(reader), settings)


def report(source: Path, questions: Path, limit: int, shares: Sequence[float]) -> list[Measured]:
    """Measures the reader with each share of zeros: what they cost in F1 and save in time; raises BadData."""
    points = []
    for share in shares:
        reader = load_reader(source)
        _zero(reader, share)
        with tempfile.TemporaryDirectory(prefix="shardqa-prune-") as work:
            checkpoint, exact = Path(work) / "checkpoint", Path(work) / "exact"
            checkpoint.mkdir()
            write_checkpoint(reader, source, checkpoint)
            export(checkpoint, exact, Check(limit=4, keep_failing=True))
            scores = measure(exact, questions, limit)
        points.append(Measured(zeros(reader), scores.f1, 1e3 * scores.seconds / scores.questions))
    return points


def zeros(reader: SpanReader) -> float:
    """The share of the layers' weights that are zero."""
    matrices = _matrices(reader)
    return sum(int((value == 0).sum()) for value in matrices) / sum(value.numel() for value in matrices)


@dataclass(frozen=True, slots=True)
class Importance:
    """Importance of one layer's parts: what the loss would miss."""

    heads: Tensor  # [heads], 0 or more
    columns: Tensor  # [columns], 0 or more


@dataclass(frozen=True, slots=True)
class LayerParts:
    """The parts of a layer that stay."""

    heads: tuple[int, ...]
    columns: tuple[int, ...]  # of the feed-forward


def chosen(scores: Sequence[Importance], heads: float, columns: float) -> list[LayerParts]:
    """The parts that stay when the least important shares of all heads and of all columns go."""
    head_line = _line([one.heads for one in scores], heads)
    column_line = _line([one.columns for one in scores], columns)
    layers = []
    for one in scores:
        width = -(-int((one.columns > column_line).sum()) // COLUMN_STEP) * COLUMN_STEP
        width = min(len(one.columns), max(COLUMN_STEP, width))
        count = max(1, int((one.heads > head_line).sum()))
        layers.append(LayerParts(_largest(one.heads, count), _largest(one.columns, width)))
    return layers


def _line(scores: Sequence[Tensor], share: float) -> float:
    """The importance that the given share of all parts does not exceed; below all where the share is 0."""
    ordered = torch.cat(list(scores)).sort().values
    count = int(share * len(ordered))
    return float(ordered[count - 1]) if count else -1.0


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
            reader_loss(reader_logits(reader, batch, loop.CPU), batch, loop.CPU).backward()  # type: ignore[no-untyped-call]
        for layer, total in zip(layers, totals, strict=True):
            grouped = _grouped(layer, *(_expanded(one) for one in (layer.mix, layer.narrow)))
            total.heads.add_(grouped.heads.abs())
            total.columns.add_(grouped.columns.abs())
    return totals


def _expanded(product: nn.Linear) -> Tensor:
    assert product.weight.grad is not None
    return product.weight.detach() * product.weight.grad


def _grouped(layer: Layer, mix: Tensor, narrow: Tensor) -> Importance:
    """Sums over what each head and each column feeds: [hidden, inner] and [hidden, columns] to a number each."""
    return Importance(mix.sum(0).view(layer.heads, layer.head_size).sum(1), narrow.sum(0))


def _sampled(paths: Sequence[Path], tokenizer: Tokenizer, rows: int) -> list[LearningRow]:
    sources, _ = examples.read(paths, tokenizer)
    spread = sources[:: max(1, len(sources) // rows)][:rows]
    return [row for one in spread for row in learning_rows(one.example)]


def slimmed(reader: SpanReader, parts: Sequence[LayerParts]) -> SpanReader:
    """A new reader with room for the parts that stay and no others, so that the smaller products are computed."""
    layers = tuple(LayerSize(len(one.heads), len(one.columns)) for one in parts)
    small = SpanReader(replace(reader.encoder.sizes, layers=layers), reader.evidence is not None)
    state = {name: value for name, value in reader.state_dict().items() if not name.startswith("encoder.layers.")}
    small.load_state_dict(state, strict=False)
    with torch.no_grad():
        for one, source, layer in zip(parts, reader.encoder.layers, small.encoder.layers, strict=True):
            assert isinstance(source, Layer)
            assert isinstance(layer, Layer)
            _copy_layer(source, layer, one)
    return small


def _copy_layer(source: Layer, layer: Layer, parts: LayerParts) -> None:
    size, every = source.head_size, torch.arange(source.mix.out_features)
    inner = torch.tensor([head * size + place for head in parts.heads for place in range(size)])
    packed = torch.cat([part * source.heads * size + inner for part in range(3)])
    columns = torch.tensor(parts.columns)
    for name, outputs, inputs in (
        ("qkv", packed, every),
        ("mix", every, inner),
        ("widen", columns, every),
        ("narrow", every, columns),
    ):
        old, new = getattr(source, name), getattr(layer, name)
        new.weight.copy_(old.weight[outputs][:, inputs])
        new.bias.copy_(old.bias[outputs])
    layer.attention_norm.load_state_dict(source.attention_norm.state_dict())
    layer.output_norm.load_state_dict(source.output_norm.state_dict())


def _zero(reader: SpanReader, share: float) -> None:
    """Sets exactly the given share of each matrix, the smallest by magnitude, to zero."""
    with torch.no_grad():
        for value in _matrices(reader):
            smallest = value.abs().flatten().topk(int(share * value.numel()), largest=False).indices
            value.view(-1)[smallest] = 0


def _matrices(reader: SpanReader) -> list[nn.Parameter]:
    return [value for value in reader.encoder.layers.parameters() if value.dim() == 2]


def _parameters(reader: SpanReader) -> int:
    return sum(value.numel() for value in reader.parameters())


def _between(name: str, share: float) -> float:
    if not 0 <= share < 1:
        raise BadData(f"{name} is {share}, 0 or more and below 1 is needed")
    return share


def _write(reader: SpanReader, source: Path, out: Path, before: int, settings: dict[str, Any]) -> Pruned:
    share = zeros(reader)
    none = sum(int((value == 0).sum()) for value in _matrices(reader))
    layers = tuple((size.heads, size.width) for size in reader.encoder.sizes.layers)
    pruned = Pruned(before, _parameters(reader) - none, layers, share)
    with written_atomically(out) as folder:
        write_checkpoint(reader, source, folder)
        cards.derive(source, folder, cards.CardStep("prune", {**settings, **asdict(pruned)}))
    return pruned
