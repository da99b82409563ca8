"""A checkpoint's reader as TorchScript, which any torch loads without this package."""

from __future__ import annotations

import io
import math
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from torch.nn import functional

if TYPE_CHECKING:
    from shardqa_toolchain.conversion.checkpoint import Checkpoint
    from shardqa_toolchain.conversion.graph import BertShape, Weights

MASKED = -1e9  # added to the attention logits of padding


class _Dense(nn.Module):
    def __init__(self, weights: Weights, name: str) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.from_numpy(weights[f"{name}.weight"].copy()), requires_grad=False)
        self.bias = nn.Parameter(torch.from_numpy(weights[f"{name}.bias"].copy()), requires_grad=False)

    def forward(self, value: Tensor) -> Tensor:
        return functional.linear(value, self.weight, self.bias)


class _Norm(_Dense):
    def __init__(self, weights: Weights, name: str, epsilon: float) -> None:
        super().__init__(weights, name)
        self.epsilon = epsilon

    def forward(self, value: Tensor) -> Tensor:
        return functional.layer_norm(value, self.weight.shape, self.weight, self.bias, self.epsilon)


class _Layer(nn.Module):
    def __init__(self, weights: Weights, shape: BertShape, prefix: str) -> None:
        super().__init__()
        self.head_size = shape.head_size
        self.query, self.key, self.value = (
            _Dense(weights, f"{prefix}attention.self.{part}") for part in ("query", "key", "value")
        )
        self.mix = _Dense(weights, prefix + "attention.output.dense")
        self.attended = _Norm(weights, prefix + "attention.output.LayerNorm", shape.epsilon)
        self.widen = _Dense(weights, prefix + "intermediate.dense")
        self.narrow = _Dense(weights, prefix + "output.dense")
        self.norm = _Norm(weights, prefix + "output.LayerNorm", shape.epsilon)

    def forward(self, hidden: Tensor, bias: Tensor) -> Tensor:
        query, key, value = (
            part(hidden).unflatten(-1, (-1, self.head_size)).transpose(1, 2)
            for part in (self.query, self.key, self.value)
        )
        weights = (query @ key.transpose(-1, -2) / math.sqrt(self.head_size) + bias).softmax(-1)
        attended: Tensor = self.attended(hidden + self.mix((weights @ value).transpose(1, 2).flatten(2)))
        normalised: Tensor = self.norm(attended + self.narrow(functional.gelu(self.widen(attended))))
        return normalised


class TracedReader(nn.Module):
    """The span reader of a checkpoint, for tracing."""

    def __init__(self, weights: Weights, shape: BertShape) -> None:
        super().__init__()
        tables = "bert.embeddings."
        self.words, self.places, self.types = (
            nn.Parameter(torch.from_numpy(weights[f"{tables}{name}_embeddings.weight"].copy()), requires_grad=False)
            for name in ("word", "position", "token_type")
        )
        self.norm = _Norm(weights, tables + "LayerNorm", shape.epsilon)
        self.layers = nn.ModuleList(
            _Layer(weights, shape, f"bert.encoder.layer.{number}.") for number in range(shape.layers)
        )
        self.span = _Dense(weights, "qa_outputs")

    def forward(self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor) -> tuple[Tensor, Tensor]:
        """Start and end logits, float32 [batch, tokens] each; inputs are int64 [batch, tokens]."""
        words, types = functional.embedding(input_ids, self.words), functional.embedding(token_type_ids, self.types)
        hidden = self.norm(words + types + self.places[: input_ids.shape[1]])
        bias = (1 - attention_mask[:, None, None, :]).to(hidden.dtype) * MASKED
        for layer in self.layers:
            hidden = layer(hidden, bias)
        start, end = self.span(hidden).float().unbind(-1)
        return start, end


def write(checkpoint: Checkpoint, file: Path, halves: bool = False) -> None:
    """Trace the checkpoint's reader into a file, in bfloat16 if ``halves``; raises OSError."""
    reader = TracedReader(checkpoint.weights, checkpoint.shape).eval().to(torch.bfloat16 if halves else torch.float32)
    example = (torch.zeros(2, 5, dtype=torch.int64), torch.ones(2, 5, dtype=torch.int64), torch.zeros(2, 5).long())
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore", DeprecationWarning)
        traced = torch.jit.trace(reader, example)  # type: ignore[no-untyped-call]
        content = io.BytesIO()
        torch.jit.save(traced, content)
    # By way of memory: torch's own writer reports a full disk as a RuntimeError without a cause.
    file.write_bytes(content.getvalue())
