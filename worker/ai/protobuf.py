"""Protobuf's wire format (https://protobuf.dev/programming-guides/encoding/), as far as ONNX files need it: fields of
a message by their numbers, and fields to write."""

import mmap
from collections.abc import Iterator
from typing import NamedTuple, TypeAlias

Data: TypeAlias = bytes | mmap.mmap

VARINT, BLOCK = 0, 2  # kinds of fields; 1 and 5 have 8 and 4 bytes


class BadProtobuf(ValueError):
    """Bytes that are no message."""


class MessageField(NamedTuple):
    number: int
    start: int  # of the field with its number
    content: int  # of what it holds
    end: int


def fields(data: Data, at: int, end: int) -> Iterator[MessageField]:
    """Yields the fields of the message that lies from `at` to `end`. Raises BadProtobuf."""
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


def block(number: int, content: bytes) -> bytes:
    """Returns the bytes of a field that holds bytes, text or a message."""
    return varint(number << 3 | BLOCK) + varint(len(content)) + content


def numeric(field: int, value: int) -> bytes:
    """Returns the bytes of a field that holds a number of 0 or more."""
    return varint(field << 3 | VARINT) + varint(value)


def varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def _number(data: Data, at: int, end: int) -> tuple[int, int]:
    """Returns the varint at a place, and the place behind it. Raises BadProtobuf."""
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
