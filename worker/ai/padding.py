"""Requests of different lengths in one run: the inputs named PADDED are filled up with zeros along dimension 1.

A mask among them says by its zeros what is filling. Outputs are cut back to each request's own length, in the
dimensions that the model calls like that of its padded inputs; where a model names no dimensions, in those that are as
long as the padded inputs were. On a processor filling costs as much as words do, so a run takes requests of like
lengths: filling is at most a share of it (WASTE).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from shardqa.tensors import Array
from shardqa.worker.ai.messages import ModelError

WASTE = 1.15  # positions of a run, over those that are no filling
AXIS = 1


@dataclass(frozen=True, slots=True)
class Padding:
    inputs: frozenset[int]  # positions of the padded inputs
    cuts: Sequence[Sequence[int] | None]  # per output: the dimensions to cut; None: those that are as long

    def length_of(self, arrays: Sequence[Array]) -> int | None:
        """Returns the tokens in dimension 1 of a request's padded inputs; None where they differ, or have none."""
        lengths = {arrays[i].shape[AXIS] if arrays[i].ndim > AXIS else None for i in self.inputs if i < len(arrays)}
        return lengths.pop() if len(lengths) == 1 else None

    def likeness(self, arrays: Sequence[Array]) -> tuple[object, ...]:
        """Returns a value that is equal for requests which may run together, once each has a length."""
        return tuple(
            (a.dtype, a.ndim, a.shape[AXIS + 1 :] if i in self.inputs else a.shape[1:]) for i, a in enumerate(arrays)
        )

    def stacked(self, requests: Sequence[Sequence[Array]], length: int) -> list[Array]:
        return [
            np.concatenate([_filled(a, length) if i in self.inputs else a for a in column])
            for i, column in enumerate(zip(*requests, strict=True))
        ]

    def cut(self, outputs: Sequence[Array], width: int, length: int) -> list[Array]:
        """Returns one request's rows of the outputs, cut from `width` to its own `length`."""
        if width == length:
            return list(outputs)
        dims_of = [*self.cuts, *[None] * (len(outputs) - len(self.cuts))]
        return [_shortened(o, dims, width, length) for o, dims in zip(outputs, dims_of, strict=False)]


def padding_of(names: Sequence[str], model: Any) -> Padding | None:
    """Returns the padding that the inputs named PADDED need; None for none. Raises ModelError."""
    if not names:
        return None
    inputs = list(model.inputs)
    for name in names:
        if name not in inputs:
            names_there = ", ".join(inputs)
            raise ModelError(f"ERR PADDED names {name}, which is no input of the model; it has {names_there}")
    if not model.splits:
        raise ModelError("ERR PADDED needs a model whose inputs and outputs all have a free first dimension")
    return Padding(frozenset(inputs.index(name) for name in names), model.sequence_cuts(frozenset(names)))


def of_like_lengths(sizes: Sequence[tuple[int, int | None]], most: int, least: int) -> list[int]:
    """Returns the places of the requests that run with the first, from their (rows, length).

    Those nearest in length do, as long as filling is a small share, or fewer than `least` rows are there, and at most
    `most` rows.
    """
    rows, longest = sizes[0][0], sizes[0][1] or 0
    batch, real = [0], rows * longest
    own = longest
    others = [(abs(length - own), i) for i, (_, length) in enumerate(sizes) if i > 0 and length is not None]
    for _, i in sorted(others):
        more, length = rows + sizes[i][0], sizes[i][1] or 0
        reach, words = max(longest, length), real + sizes[i][0] * length
        if more <= most and (more * reach <= WASTE * words or rows < least):
            batch.append(i)
            rows, longest, real = more, reach, words
    return batch


def _filled(array: Array, length: int) -> Array:
    missing = length - array.shape[AXIS]
    if not missing:
        return array
    return np.pad(array, [(0, missing if axis == AXIS else 0) for axis in range(array.ndim)])


def _shortened(output: Array, dims: Sequence[int] | None, width: int, length: int) -> Array:
    if dims is None:
        dims = [axis for axis in range(1, output.ndim) if output.shape[axis] == width]
    parts = [slice(length) if axis in dims else slice(None) for axis in range(output.ndim)]
    return np.ascontiguousarray(output[tuple(parts)])
