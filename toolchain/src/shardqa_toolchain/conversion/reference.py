"""BERT in numpy, straight from the papers' formulas: the witness that conversions are checked against.

It shares no line with the graph that `graph.py` writes and none of onnxruntime's operators, so that a fault of either
shows. About three times as slow as the graph.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shardqa.models.reader import Batch
from shardqa_toolchain.conversion.graph import BertShape, Weights

Floats = NDArray[np.float32]
Outputs = dict[str, Floats]  # by name; the first axis is rows, the second, where an output is of tokens, tokens


MASKED = np.float32(-1e9)  # added to the attention logits of padding


@dataclass(frozen=True, slots=True)
class Reference:
    """A checkpoint's reader, float32."""

    weights: Weights
    shape: BertShape

    def logits(self, batch: Batch) -> Floats:
        """Start and end logits of a batch, float32 [rows, tokens, 2]."""
        return self.dense("qa_outputs", self.hidden(batch))

    def hidden(self, batch: Batch) -> Floats:
        """The last layer's output, float32 [rows, tokens, hidden size]."""
        hidden = self._embed(batch)
        bias = (1 - batch.attention_mask[:, None, None, :]).astype(np.float32) * MASKED
        for number in range(self.shape.layers):
            hidden = self._layer(f"bert.encoder.layer.{number}.", hidden, bias)
        return hidden

    def _embed(self, batch: Batch) -> Floats:
        tables = "bert.embeddings."
        words = self.weights[tables + "word_embeddings.weight"][batch.input_ids]
        types = self.weights[tables + "token_type_embeddings.weight"][batch.token_type_ids]
        places = self.weights[tables + "position_embeddings.weight"][None, : batch.input_ids.shape[1]]
        return self._norm(tables + "LayerNorm", words + types + places)

    def _layer(self, prefix: str, hidden: Floats, bias: Floats) -> Floats:
        """Returns a layer's output (Vaswani et al. 2017, section 3), normalised after each sum."""
        context = self._attend(prefix + "attention.self.", hidden, bias)
        mix = self.dense(prefix + "attention.output.dense", context)
        middle = self._norm(prefix + "attention.output.LayerNorm", hidden + mix)
        active = gelu(self.dense(prefix + "intermediate.dense", middle))
        return self._norm(prefix + "output.LayerNorm", middle + self.dense(prefix + "output.dense", active))

    def _attend(self, prefix: str, hidden: Floats, bias: Floats) -> Floats:
        rows, tokens, _ = hidden.shape
        size = self.shape.head_size
        query, key, value = (
            self.dense(prefix + part, hidden).reshape(rows, tokens, -1, size).transpose(0, 2, 1, 3)
            for part in ("query", "key", "value")
        )
        logits = query @ key.swapaxes(-1, -2) / np.float32(math.sqrt(size)) + bias
        weights = np.exp(logits - logits.max(axis=-1, keepdims=True))
        weights /= weights.sum(axis=-1, keepdims=True)
        context: Floats = (weights @ value).transpose(0, 2, 1, 3).reshape(rows, tokens, -1)
        return context

    def dense(self, name: str, value: Floats) -> Floats:
        """A value times the transposed weight of this name, and its bias."""
        product: Floats = value @ self.weights[f"{name}.weight"].T + self.weights[f"{name}.bias"]
        return product

    def _norm(self, name: str, value: Floats) -> Floats:
        """Returns the value normalised over the last axis (Ba et al. 2016)."""
        distance = value - value.mean(axis=-1, keepdims=True)
        deviation = np.sqrt((distance**2).mean(axis=-1, keepdims=True) + np.float32(self.shape.epsilon))
        result: Floats = distance / deviation * self.weights[f"{name}.weight"] + self.weights[f"{name}.bias"]
        return result


_ERF = (0.254829592, -0.284496736, 1.421413741, -1.453152027, 1.061405429)
_ERF_P = 0.3275911


def gelu(value: Floats) -> Floats:
    """Returns x times the normal distribution's share below x (Hendrycks and Gimpel 2016, section 2), within 2e-7 x.

    erf by Abramowitz and Stegun 1964, formula 7.1.26: numpy has none.
    """
    z = np.abs(value) * math.sqrt(0.5)
    t = 1 / (1 + _ERF_P * z)
    series = np.zeros_like(z)
    for factor in reversed(_ERF):
        series = (series + factor) * t
    tail = series * np.exp(-z * z)
    below = np.where(value < 0, tail, 2 - tail) / 2
    return np.asarray(value * below, dtype=np.float32)
