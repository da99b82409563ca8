"""An ONNX file whose weights stay where they lie: in the file, which all workers of the host map.

onnxruntime copies weights that are part of a model, and maps those that lie in a file of their own. The model's file
is that file: here its description is read, without the weights, and says of each where it stands in the file itself.
Only what protobuf's wire format needs is known here (https://protobuf.dev/programming-guides/encoding/), and the
numbers of four fields of onnx.proto.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

LEAST = 1 << 16  # bytes of a weight that is worth a mapping of its own
GRAPH, INITIALIZER, RAW_DATA, EXTERNAL_DATA, DATA_LOCATION = 7, 5, 9, 13, 14  # of ModelProto, GraphProto, TensorProto
VARINT, BLOCK = 0, 2  # kinds of fields; 1 and 5 have 8 and 4 bytes
EXTERNAL = b"\1"  # a value of DATA_LOCATION


class BadProtobuf(ValueError):
    """Bytes that are no message."""


class MessageField(NamedTuple):
    number: int
    start: int  # of the field with its number
    content: int  # of what it holds
    end: int


def without_weights(path: Path) -> bytes:
    """The model, to be loaded beside `path`. Raises BadProtobuf, OSError."""
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as data:
        return b"".join(_model(data, path.name.encode()))


def _model(data: mmap.mmap, name: bytes) -> Iterator[bytes]:
    for field in _fields(data, 0, len(data)):
        if field.number == GRAPH:
            yield _block(GRAPH, b"".join(_graph(data, field, name)))
        else:
            yield data[field.start : field.end]


def _graph(data: mmap.mmap, graph: MessageField, name: bytes) -> Iterator[bytes]:
    for field in _fields(data, graph.content, graph.end):
        if field.number == INITIALIZER:
            yield _block(INITIALIZER, _initializer(data, field, name))
        else:
            yield data[field.start : field.end]


def _initializer(data: mmap.mmap, tensor: MessageField, name: bytes) -> bytes:
    fields = list(_fields(data, tensor.content, tensor.end))
    raw = [field for field in fields if field.number == RAW_DATA]
    if len(raw) != 1 or raw[0].end - raw[0].content < LEAST:
        return data[tensor.content : tensor.end]
    where = {b"location": name, b"offset": b"%d" % raw[0].content, b"length": b"%d" % (raw[0].end - raw[0].content)}
    parts = [data[field.start : field.end] for field in fields if field.number != RAW_DATA]
    parts += [_block(EXTERNAL_DATA, _block(1, key) + _block(2, value)) for key, value in where.items()]
    return b"".join([*parts, _varint(DATA_LOCATION << 3 | VARINT), EXTERNAL])


def _fields(data: mmap.mmap, at: int, end: int) -> Iterator[MessageField]:
    while at < end:
        start = at
        tag, at = _number(data, at, end)
        content = at
        match tag & 7:
            case 0:
                _, at = _number(data, at, end)
            case 1:
                at += 8
            case 2:
                length, content = _number(data, at, end)
                at = content + length
            case 5:
                at += 4
            case kind:
                raise BadProtobuf(f"a field of kind {kind} at byte {start}")
        if at > end:
            raise BadProtobuf(f"the field at byte {start} ends past its message")
        yield MessageField(tag >> 3, start, content, at)


def _number(data: mmap.mmap, at: int, end: int) -> tuple[int, int]:
    """A varint, and where it ends."""
    value = 0
    for shift in range(0, 70, 7):
        if at >= end:
            break
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
    raise BadProtobuf(f"the number at byte {at} does not end")


def _block(number: int, content: bytes) -> bytes:
    return _varint(number << 3 | BLOCK) + _varint(len(content)) + content


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])
