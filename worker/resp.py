"""Python values as RESP: what functions return, and what `override_reply` carries.

A str or bytes is always data (a bulk string), also when it begins with '-' or '+'; a Line is not. Maps,
sets, doubles and booleans use their RESP3 forms; the module turns them down for a RESP2 client.
"""

import math
import re
from collections.abc import Mapping, Set
from typing import Any

CODES = {"ERR", "BUSY", "TIMEOUT", "TRYAGAIN", "READONLY", "WRONGTYPE", "NOPERM"}
CODES |= {"MOVED", "ASK", "CLUSTERDOWN", "LOADING", "OOM", "MISCONF", "NOREPLICAS"}
MAX_DEPTH = 16  # nested replies; the module refuses deeper ones
MAX_STRING = 512 << 20  # bytes of one string, Redis' own proto-max-bulk-len; looked at before anything is copied
MAX_ERROR = 1000  # characters of an error text
LINE = re.compile(r"\+[A-Z]+|-[A-Z]+ .+", re.DOTALL)
BREAKS = re.compile(r"[\r\n\0]+")

OK = b"+OK\r\n"
NIL = b"$-1\r\n"


class Line(str):
    """'+OK', sent as a status, or '-ERR why', as an error."""

    __slots__ = ()


class _TooDeep(Exception):
    """A value nested deeper than MAX_DEPTH."""


def lined(value: object) -> object:
    """Returns a Line where a function's reply is one, as RedisGears has it; '-5' or '+49 …' are none."""
    return Line(value) if isinstance(value, str) and LINE.fullmatch(value) else value


def encode(value: object) -> bytes:
    """Writes a RESP reply. Objects of other types are sent as their str(); one nested too deep becomes an error."""
    try:
        return _encode(value, 0)
    except _TooDeep:
        return error(f"ERR the reply is nested deeper than {MAX_DEPTH}; return a flatter value")


def _encode(value: object, depth: int) -> bytes:
    if depth > MAX_DEPTH:
        raise _TooDeep
    match value:
        case None:
            return NIL
        case Line():
            return error(value[1:]) if value[0] == "-" else value.encode() + b"\r\n"
        case str() | bytes() | bytearray() | memoryview() if len(value) > MAX_STRING:
            return error(
                f"ERR the reply holds a string of {len(value)} bytes, at most {MAX_STRING}; return less at once"
            )
        case bytes() | bytearray() | memoryview():
            return bulk(bytes(value))
        case str():
            return bulk(value.encode("utf-8", "surrogateescape" if not _lone_surrogate(value) else "replace"))
        case bool():
            return b"#t\r\n" if value else b"#f\r\n"
        case int():
            return b":%d\r\n" % value if -(1 << 63) <= value < 1 << 63 else bulk(b"%d" % value)
        case float():
            return b",%s\r\n" % repr(value).encode() if math.isfinite(value) else bulk(repr(value).encode())
        case list() | tuple():
            return _aggregate(b"*", [_encode(item, depth + 1) for item in value])
        case Mapping():
            return _aggregate(b"%", [_encode(k, depth + 1) + _encode(v, depth + 1) for k, v in value.items()])
        case Set():
            return _aggregate(b"~", [_encode(item, depth + 1) for item in value])
        case _:
            return _encode(str(value), depth)


def _aggregate(kind: bytes, parts: list[bytes]) -> bytes:
    """The parts are counted, not the value: a class of a user's own may say another length than it gives."""
    return b"%b%d\r\n" % (kind, len(parts)) + b"".join(parts)


def pairs(**fields: Any) -> list[Any]:
    """Returns name, value, … as RESP2 has no maps."""
    return [item for pair in fields.items() for item in pair]


def bulk(data: bytes) -> bytes:
    return b"$%d\r\n%s\r\n" % (len(data), data)


def error(text: str) -> bytes:
    """An error reply of one line; a text without a known code gets ERR."""
    line = BREAKS.sub(" ", text).lstrip()[:MAX_ERROR] or "ERR unknown error"
    if line.split(" ", 1)[0] not in CODES:
        line = f"ERR {line}"
    return b"-" + line.encode("utf-8", "replace") + b"\r\n"


def _lone_surrogate(text: str) -> bool:
    """True when `text` holds a surrogate that surrogateescape can't turn back into a byte."""
    try:
        text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return True
    return False
