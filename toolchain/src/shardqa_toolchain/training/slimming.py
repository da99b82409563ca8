"""Smaller networks out of larger ones: heads, columns of the feed-forward, layers and hidden units really removed.

What goes is chosen elsewhere (`prune.py`, `distil.py`); here the chosen parts are copied into a network that has no
room for the others, so that the smaller products are what is computed.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from shardqa.errors import BadModel
from shardqa_toolchain.training.network import Layer, LayerSize, SpanReader


@dataclass(frozen=True, slots=True)
class KeptLayer:
    """The parts of a layer that stay."""

    number: int  # of the layer in the larger network, from 0
    heads: tuple[int, ...]
    columns: tuple[int, ...]  # of the feed-forward


def slimmed(reader: SpanReader, layers_left: Sequence[KeptLayer], hidden: Sequence[int] | None = None) -> SpanReader:
    """Returns a new reader of the parts ``layers_left``; ``hidden`` are the hidden units that stay, all unless given.

    Raises BadModel for a network whose heads share a table of distances.
    """
    old = reader.encoder.sizes
    if old.buckets:
        raise BadModel("a network with MPNet's relative places can't be cut; distil from it into a BERT of its own")
    units = torch.tensor(range(old.hidden) if hidden is None else list(hidden))
    layers = tuple(LayerSize(len(one.heads), len(one.columns)) for one in layers_left)
    new = SpanReader(
        replace(old, hidden=len(units), layers=layers), reader.encoder.dropout, reader.evidence is not None
    )
    with torch.no_grad():
        _copy_tables(reader, new, units)
        for one, layer in zip(layers_left, new.encoder.layers, strict=True):
            source = reader.encoder.layers[one.number]
            assert isinstance(source, Layer)
            assert isinstance(layer, Layer)
            _copy_layer(source, layer, one, units)
        for name, head in reader.heads().items():
            new.heads()[name].weight.copy_(head.weight[:, units])
            new.heads()[name].bias.copy_(head.bias)
    return new


def _copy_tables(reader: SpanReader, new: SpanReader, units: Tensor) -> None:
    for name, value in new.encoder.embeddings.named_parameters():
        value.copy_(reader.encoder.embeddings.get_parameter(name)[..., units])


def _copy_layer(source: Layer, layer: Layer, parts: KeptLayer, units: Tensor) -> None:
    size = source.head_size
    inner = torch.tensor([head * size + place for head in parts.heads for place in range(size)])
    packed = torch.cat([part * source.heads * size + inner for part in range(3)])
    columns = torch.tensor(parts.columns)
    _copy_product(source.qkv, layer.qkv, packed, units)
    _copy_product(source.mix, layer.mix, units, inner)
    _copy_product(source.widen, layer.widen, columns, units)
    _copy_product(source.narrow, layer.narrow, units, columns)
    for norm, old in ((layer.attention_norm, source.attention_norm), (layer.output_norm, source.output_norm)):
        norm.weight.copy_(old.weight[units])
        norm.bias.copy_(old.bias[units])


def _copy_product(source: nn.Linear, product: nn.Linear, outputs: Tensor, inputs: Tensor) -> None:
    product.weight.copy_(source.weight[outputs][:, inputs])
    product.bias.copy_(source.bias[outputs])
