"""BERT in torch, for training: what `conversion/graph.py` writes as ONNX, with gradients.

Our own rather than transformers' because query, key and value are one product (a fifth faster on CPU). Tensors keep
transformers' names in files, so that a checkpoint loads there too; `test_network.py` holds one against the other.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from shardqa.errors import BadModel
from shardqa_toolchain.conversion.families import RELATIVE_TABLE

MASKED = -10_000.0  # added to the attention logits of padding: e^-10000 is 0, and bfloat16 holds the number

# Standard deviation of fresh weights (Devlin et al. 2019, their published code).
INITIAL_DEVIATION = 0.02

# Distances from here on share one bucket (Raffel et al. 2020, section 2.1).
FARTHEST = 128


@dataclass(frozen=True, slots=True)
class LayerSize:
    """Sizes that may differ from layer to layer."""

    heads: int
    width: int  # columns of the feed-forward


@dataclass(frozen=True, slots=True)
class Sizes:
    vocabulary: int
    positions: int
    types: int
    hidden: int
    head_size: int
    layers: tuple[LayerSize, ...]
    epsilon: float = 1e-12  # added to the variance in layer normalisation
    buckets: int = 0  # of distances that have a number for each head, as in MPNet; 0 for BERT's places alone

    @classmethod
    def of(cls, config: Mapping[str, Any], weights: Mapping[str, NDArray[np.float32]]) -> Self:
        """Read the shape off a checkpoint's weights, and what they don't tell off its ``config.json``."""
        tables = "bert.embeddings."
        vocabulary, hidden = weights[tables + "word_embeddings.weight"].shape
        head_size = config.get("head_size") or hidden // config["num_attention_heads"]
        prefix = "bert.encoder.layer."
        layers = tuple(
            LayerSize(
                len(weights[f"{prefix}{n}.attention.self.query.weight"]) // head_size,
                len(weights[f"{prefix}{n}.intermediate.dense.weight"]),
            )
            for n in range(config["num_hidden_layers"])
        )
        positions = len(weights[tables + "position_embeddings.weight"])
        types = len(weights[tables + "token_type_embeddings.weight"])
        buckets = len(weights.get(RELATIVE_TABLE, ()))
        return cls(vocabulary, positions, types, hidden, head_size, layers, config["layer_norm_eps"], buckets)


class Embeddings(nn.Module):
    """Words, places and segments, summed and normalised."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        self.word_embeddings = nn.Embedding(sizes.vocabulary, sizes.hidden)
        self.position_embeddings = nn.Embedding(sizes.positions, sizes.hidden)
        self.token_type_embeddings = nn.Embedding(sizes.types, sizes.hidden)
        self.LayerNorm = nn.LayerNorm(sizes.hidden, sizes.epsilon)

    def forward(self, input_ids: Tensor, token_type_ids: Tensor) -> Tensor:
        places = self.position_embeddings.weight[: input_ids.shape[1]]
        total = self.word_embeddings(input_ids) + self.token_type_embeddings(token_type_ids) + places
        result: Tensor = self.LayerNorm(total)
        return result


class Layer(nn.Module):
    """Self-attention and feed-forward, each added to its input and normalised (Vaswani et al. 2017, section 3.1)."""

    def __init__(self, sizes: Sizes, size: LayerSize) -> None:
        super().__init__()
        inner = size.heads * sizes.head_size
        self.heads, self.head_size = size.heads, sizes.head_size
        self.qkv = nn.Linear(sizes.hidden, 3 * inner)
        self.mix = nn.Linear(inner, sizes.hidden)
        self.attention_norm = nn.LayerNorm(sizes.hidden, sizes.epsilon)
        self.widen = nn.Linear(sizes.hidden, size.width)
        self.narrow = nn.Linear(size.width, sizes.hidden)
        self.output_norm = nn.LayerNorm(sizes.hidden, sizes.epsilon)

    def forward(self, hidden: Tensor, bias: Tensor) -> Tensor:
        """Takes hidden [batch, tokens, hidden] and a bias of the logits, [batch, 1 or heads, 1 or tokens, tokens]."""
        batch, tokens, _ = hidden.shape
        product = self.qkv(hidden).view(batch, tokens, 3, self.heads, self.head_size)
        query, key, value = product.permute(2, 0, 3, 1, 4).unbind()
        # Written out: on CPU torch's fused attention is a third slower for rows of a few hundred tokens.
        logits = (query / math.sqrt(self.head_size)) @ key.transpose(-1, -2)
        weights = (logits + bias.to(logits.dtype)).softmax(-1)
        context = (weights @ value).transpose(1, 2).reshape(batch, tokens, -1)
        hidden = self.attention_norm(hidden + self.mix(context))
        output: Tensor = self.output_norm(hidden + self.narrow(functional.gelu(self.widen(hidden))))
        return output


class Encoder(nn.Module):
    """BERT without a head."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        self.sizes = sizes
        self.embeddings = Embeddings(sizes)
        self.relative = nn.Embedding(sizes.buckets, sizes.layers[0].heads) if sizes.buckets else None
        self.layers = nn.ModuleList(Layer(sizes, size) for size in sizes.layers)

    def forward(self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor) -> list[Tensor]:
        """The embeddings and each layer's output, [batch, tokens, hidden] each; inputs are int64 [batch, tokens]."""
        hidden = [self.embeddings(input_ids, token_type_ids)]
        bias = (1 - attention_mask[:, None, None, :]) * MASKED
        if self.relative is not None:
            places = buckets(input_ids.shape[1], self.sizes.buckets).to(input_ids.device)
            bias = bias + self.relative(places).permute(2, 0, 1)
        for layer in self.layers:
            hidden.append(layer(hidden[-1], bias))
        return hidden


def buckets(tokens: int, count: int) -> Tensor:
    """Returns the bucket of each token's distance from each other, int64 [tokens, tokens], below ``count``.

    Half of them is for what stands after a token; half of a half tells single distances, the rest ever longer ones
    (Raffel et al. 2020, section 2.1; MPNet takes them over).
    """
    places = torch.arange(tokens)
    distance = places[None, :] - places[:, None]
    side, single = count // 2, count // 4
    far = (distance.abs().clamp(min=1) / single).log() / math.log(FARTHEST / single) * (side - single)
    bucket = torch.where(distance.abs() < single, distance.abs(), (single + far.long()).clamp(max=side - 1))
    return bucket + side * (distance > 0)


class ReaderLogits(NamedTuple):
    """A reader's outputs, as products give them."""

    spans: Tensor  # starts and ends, [batch, tokens, 2]
    evidence: Tensor | None  # whether each token belongs to a sentence that answers, log-odds [batch, tokens]
    relevance: Tensor | None  # whether the passage answers at all, log-odds [batch]


class SpanReader(nn.Module):
    """A BERT that points at an answer's first and last token; perhaps also at the sentences that answer."""

    def __init__(self, sizes: Sizes, evidence: bool = False) -> None:
        """Makes a reader with fresh weights; ``evidence`` adds the outputs evidence and relevance."""
        super().__init__()
        self.encoder = Encoder(sizes)
        self.qa_outputs = nn.Linear(sizes.hidden, 2)
        self.evidence = nn.Linear(sizes.hidden, 1) if evidence else None
        self.relevance = nn.Linear(sizes.hidden, 1) if evidence else None
        self.apply(initialise)

    def forward(self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor) -> Tensor:
        """Start and end logits, [batch, tokens, 2]."""
        logits: Tensor = self.qa_outputs(self.encoder(input_ids, attention_mask, token_type_ids)[-1])
        return logits

    def logits(self, hidden: Tensor) -> ReaderLogits:
        """Returns all outputs from the last layer's, [batch, tokens, hidden]."""
        evidence = self.evidence(hidden).squeeze(-1) if self.evidence is not None else None
        relevance = self.relevance(hidden[:, 0]).squeeze(-1) if self.relevance is not None else None
        return ReaderLogits(self.qa_outputs(hidden), evidence, relevance)

    def heads(self) -> dict[str, nn.Linear]:
        """Returns the heads by the names of their tensors in a checkpoint."""
        optional = {"evidence": self.evidence, "relevance": self.relevance}
        return {"qa_outputs": self.qa_outputs, **{name: head for name, head in optional.items() if head is not None}}


def initialise(module: nn.Module) -> None:
    """Fresh weights as BERT's own."""
    if isinstance(module, nn.Linear | nn.Embedding):
        nn.init.normal_(module.weight, std=INITIAL_DEVIATION)
    if isinstance(module, nn.Linear):
        nn.init.zeros_(module.bias)


def load_encoder(encoder: Encoder, weights: Mapping[str, NDArray[np.float32]]) -> None:
    """Set an encoder's weights from tensors by transformers' names; raises BadModel on a missing or misshapen one."""
    for name, parameter in encoder.named_parameters():
        try:
            parts = [torch.from_numpy(weights[part]) for part in _names(name)]
        except KeyError as error:
            raise BadModel(f"the checkpoint has no tensor {error}; is it a whole BERT?") from None
        value = torch.cat(parts)
        if value.shape != parameter.shape:
            raise BadModel(f"{name} has shape {[*value.shape]}, {[*parameter.shape]} is needed; correct config.json")
        with torch.no_grad():
            parameter.copy_(value)


def tensors(encoder: Encoder) -> dict[str, Tensor]:
    """An encoder's weights by transformers' names, float32 on the CPU; `load_encoder`'s other half."""
    weights: dict[str, Tensor] = {}
    for name, parameter in encoder.named_parameters():
        names = _names(name)
        parts = parameter.detach().float().cpu().chunk(len(names))
        weights |= {part: value.contiguous().clone() for part, value in zip(names, parts, strict=True)}
    return weights


_LAYER_NAMES = {
    "qkv": tuple(f"attention.self.{part}" for part in ("query", "key", "value")),
    "mix": ("attention.output.dense",),
    "attention_norm": ("attention.output.LayerNorm",),
    "widen": ("intermediate.dense",),
    "narrow": ("output.dense",),
    "output_norm": ("output.LayerNorm",),
}


def _names(name: str) -> tuple[str, ...]:
    """Returns the names in transformers of the tensors that make up one of ours."""
    room, rest = name.split(".", 1)
    if room == "embeddings":
        return (f"bert.embeddings.{rest}",)
    if room == "relative":
        return (RELATIVE_TABLE,)
    number, part, kind = rest.split(".")
    return tuple(f"bert.encoder.layer.{number}.{theirs}.{kind}" for theirs in _LAYER_NAMES[part])
