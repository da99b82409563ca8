"""The frames of a run: EXECUTE, which asks for it, and TENSORS, its answer. Pure encoding and decoding.

Both name type and shape of all their tensors in one item, `INT64 1,128;INT64 1,128`. A run leaves the processor's
caches full of the model's weights, so whatever is called or looked at around it costs microseconds, however little it
does: what follows from types and shapes is worked out once, and kept.
"""

import functools
import math
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from shardqa import tensors
from shardqa.tensors import Array, BadTensor
from shardqa.worker import frames
from shardqa.worker.frames import HEADER, LENGTH, MAX_PAYLOAD, VERSION, MalformedFrame, PayloadTooLarge, Type

ORDERS_KEPT = 4096  # orders and forms that are kept; models see few
MICROSECONDS = struct.Struct("<Q")
START = struct.Struct("<IBBHQIIQ")  # of a TENSORS frame: header, number of items, length of MICROSECONDS, MICROSECONDS
TENSORS = int(Type.TENSORS)  # an enum's member costs more to look up


class ModelError(Exception):
    """A model that can't be loaded, or a run of it that failed. Its text is an error reply."""


@dataclass(frozen=True, slots=True)
class Order:
    """An EXECUTE frame without its data."""

    model: bytes  # the module's id
    timeout: int  # milliseconds; 0: none
    outputs: int
    inputs: Sequence["Input"]


@dataclass(frozen=True, slots=True)
class Input:
    dtype: str
    shape: tuple[int, ...]
    plain: np.dtype[Any] | None  # None where the data has to be looked at
    length: int  # bytes, where `plain` is a type


def order(payload: bytes) -> tuple[Order, list[Array]]:
    """Parses an EXECUTE payload; returns its head and the inputs, which are read-only.

    Raises BadTensor, MalformedFrame.
    """
    head, *data = frames.unpack(payload) or [b""]
    order = _order(head)
    if len(data) != len(order.inputs):
        raise MalformedFrame(f"EXECUTE names {len(order.inputs)} inputs and brings {len(data)}")
    return order, [_array(input, item) for input, item in zip(order.inputs, data, strict=True)]


def _array(input: Input, data: bytes) -> Array:
    if input.plain is None or input.length != len(data):
        return tensors.decode(input.dtype, input.shape, data)
    return np.ndarray(input.shape, input.plain, data)


@functools.lru_cache(maxsize=ORDERS_KEPT)
def _order(head: bytes) -> Order:
    """Parses `model id, timeout, n outputs, layout`, with spaces between. Raises BadTensor, MalformedFrame."""
    words = head.split(b" ", 3)
    if len(words) != 4 or not words[1].isdigit() or not words[2].isdigit():
        raise MalformedFrame(f"EXECUTE begins with {head[:100]!r}")
    inputs = tuple(_input(*tensor.partition(b" ")[::2]) for tensor in words[3].split(b";"))
    return Order(words[0], int(words[1]), int(words[2]), inputs)


def _input(name: bytes, shape: bytes) -> Input:
    dtype, dimensions = name.decode(), tensors.parse_shape(shape)
    plain = tensors.DTYPES.get(dtype) if dtype != "BOOL" else None
    return Input(dtype, dimensions, plain, math.prod(dimensions) * plain.itemsize if plain else 0)


Described = tuple[tuple[np.dtype[Any], tuple[int, ...]], ...]  # type and shape of each output


@dataclass(frozen=True, slots=True)
class OutputForm:
    """The parts of a TENSORS frame that follow from types and shapes of outputs."""

    described: Described
    layout: bytes
    before: Sequence[bytes]  # what stands before each output's data; none where the outputs have to be looked at
    payload: int  # bytes, where there is a `before`

    def fits(self, outputs: Sequence[Array]) -> bool:
        """Returns whether this form surely is that of these outputs. Raises AttributeError for what is no array."""
        if len(outputs) != len(self.described):
            return False
        for (dtype, shape), output in zip(self.described, outputs, strict=True):
            if output.dtype is not dtype or output.shape != shape:
                return False
        return True


def form_of(outputs: Sequence[Array], last: OutputForm | None) -> OutputForm:
    """Returns the form of these outputs, which mostly is `last`. Raises BadTensor, PayloadTooLarge."""
    try:
        if last is not None and last.fits(outputs):
            return last
        return _form(tuple([(output.dtype, output.shape) for output in outputs]))
    except AttributeError:
        raise BadTensor("the model gives a sequence or a map, which is no tensor; export it without") from None


def answer(id: int, form: OutputForm, outputs: Sequence[Array], microseconds: int) -> bytes:
    """Returns a TENSORS frame: microseconds, layout, data of every output. Raises BadTensor, PayloadTooLarge."""
    if not form.before:
        data = [tensors.encode(output)[2] for output in outputs]
        return frames.encode(Type.TENSORS, id, frames.pack([MICROSECONDS.pack(microseconds), form.layout, *data]))
    start = START.pack(form.payload, TENSORS, 0, VERSION, id, 2 + len(outputs), MICROSECONDS.size, microseconds)
    parts: list[Any] = [start]  # an array is its bytes to join()
    for before, output in zip(form.before, outputs, strict=True):
        parts += (before, output)
    return b"".join(parts)


@functools.lru_cache(maxsize=ORDERS_KEPT)
def _form(described: Described) -> OutputForm:
    if not described:  # of a script that gives nothing
        return OutputForm(described, b"", (), 0)
    forms = [tensors.described(dtype, shape) for dtype, shape in described]
    layout = ";".join(f"{name} {shape}" for name, shape, _ in forms).encode()
    if any(right != dtype for (_, _, right), (dtype, _) in zip(forms, described, strict=True)):
        return OutputForm(described, layout, (), 0)
    sizes = [math.prod(shape) * dtype.itemsize for dtype, shape in described]
    before = [LENGTH.pack(size) for size in sizes]
    before[0] = LENGTH.pack(len(layout)) + layout + before[0]
    payload = START.size - HEADER.size + sum(map(len, before)) + sum(sizes)
    if payload > MAX_PAYLOAD:
        raise PayloadTooLarge(f"outputs of {sum(sizes)} bytes are more than {MAX_PAYLOAD}; ask for less at once")
    return OutputForm(described, layout, before, payload)
