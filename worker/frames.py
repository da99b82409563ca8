"""The frames between module and worker: pure encoding and decoding, no sockets.

Header, 16 bytes little endian: u32 payload length, u8 type, u8 flags (0), u16 version, u64 id. The payload of all
types but CALLED and REPLY is a list: u32 n, then n times (u32 length, bytes). CALLED and REPLY carry raw RESP.
Whatever breaks this form raises MalformedFrame: the stream can't be trusted any more and its reader must leave.
"""

import struct
from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum
from itertools import chain

VERSION = 2  # of the protocol; module and worker of one build agree on it
MAX_PAYLOAD = 1 << 30  # bytes; a length past it is a broken stream, not a large message
HEADER = struct.Struct("<IBBHQ")
LENGTH = struct.Struct("<I")


class Type(IntEnum):
    # module -> worker
    HELLO = 1
    SESSION = 2
    START = 3
    REQUEST = 4
    MISS = 5
    EVENT = 6
    MODELLOAD = 7
    MODELDROP = 8
    EXECUTE = 9
    CANCEL = 10
    CALLED = 11
    ROLE = 12
    RESYNC = 13
    FORGET = 14
    HOOK = 15
    SYNC = 16
    SCRIPT = 32
    DAG = 33
    # worker -> module
    READY = 64
    REPLY = 65
    TENSORS = 66
    CALL = 67
    REGISTER = 68
    UNREGISTER = 69
    WATCH = 70
    LOG = 71
    STATS = 72
    RELEASE = 73
    PROGRESS = 74
    LOCK = 75
    UNLOCK = 76
    DONE = 77
    RAN = 80
    DAG_DONE = 81


TYPES: dict[int, Type] = {type.value: type for type in Type}


class MalformedFrame(Exception):
    """Bytes that are no frame of this protocol."""


class PayloadTooLarge(ValueError):
    """A message that can't be sent because it is longer than MAX_PAYLOAD."""


@dataclass(slots=True)  # not frozen: a frozen one is three times as slow to make
class Frame:
    type: Type
    id: int
    payload: bytes

    def items(self) -> list[bytes]:
        """The payload as a list. Raises MalformedFrame."""
        return unpack(self.payload)

    def texts(self) -> list[str]:
        """Returns the items as text; bytes that are not UTF-8 become surrogates, so that keys survive."""
        return [item.decode("utf-8", "surrogateescape") for item in self.items()]


def pack(items: Iterable[bytes | bytearray | memoryview]) -> bytes:
    """A list as payload bytes."""
    words = list(items)
    lengths = map(LENGTH.pack, map(len, words))
    return b"".join((LENGTH.pack(len(words)), *chain.from_iterable(zip(lengths, words, strict=True))))


def unpack(payload: bytes) -> list[bytes]:
    """The items of a list payload. Raises MalformedFrame."""
    if len(payload) < LENGTH.size:
        raise MalformedFrame(f"a list of {len(payload)} bytes has no item count")
    (count,) = LENGTH.unpack_from(payload)
    if count > len(payload) // LENGTH.size:  # every item takes 4 bytes at least: checked before anything is built
        raise MalformedFrame(f"a list of {len(payload)} bytes can't hold {count} items")
    items: list[bytes] = []
    at = LENGTH.size
    for _ in range(count):
        if at + LENGTH.size > len(payload):
            raise MalformedFrame(f"item {len(items)} of {count} starts past the end of the payload")
        (length,) = LENGTH.unpack_from(payload, at)
        at += LENGTH.size
        if length > len(payload) - at:
            raise MalformedFrame(f"item {len(items)} of {length} bytes ends past the end of the payload")
        items.append(payload[at : at + length])
        at += length
    if at != len(payload):
        raise MalformedFrame(f"{len(payload) - at} bytes follow the last item")
    return items


def encode(type: Type, id: int, payload: bytes) -> bytes:
    """A whole frame. Raises PayloadTooLarge."""
    if len(payload) > MAX_PAYLOAD:
        raise PayloadTooLarge(f"a message of {len(payload)} bytes is longer than {MAX_PAYLOAD}; send less at once")
    return HEADER.pack(len(payload), type, 0, VERSION, id) + payload


def decode_header(data: bytes | bytearray | memoryview, at: int = 0) -> tuple[int, Type, int]:
    """Reads (payload length, type, id) of the 16 bytes at `at`. Raises MalformedFrame."""
    length, number, flags, version, id = HEADER.unpack_from(data, at)
    if version != VERSION or flags != 0:
        raise MalformedFrame(f"frame of version {version} with flags {flags}, wanted version {VERSION} with flags 0")
    if length > MAX_PAYLOAD:
        raise MalformedFrame(f"frame of {length} bytes, at most {MAX_PAYLOAD}")
    type = TYPES.get(number)
    if type is None:
        raise MalformedFrame(f"frame of unknown type {number}")
    return length, type, id
