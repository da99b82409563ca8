"""A key space in memory that answers the commands which functions commonly send: for the local runner.

Replies are as Redis gives them over RESP2, in Python's types. Keys of other nodes, expiry and persistence do not exist.
"""

from __future__ import annotations

import fnmatch
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from redis import ResponseError

Value: TypeAlias = Any  # bytes, a list of bytes, a dict or a set of them, or Messages
WRONG_TYPE = "WRONGTYPE Operation against a key holding the wrong kind of value"
PAGE = 500  # keys of one SCAN


class Messages(list[tuple[bytes, list[bytes]]]):
    """Messages: id, then names and values in turn."""


NAMES: dict[type, bytes] = {bytes: b"string", list: b"list", dict: b"hash", set: b"set", Messages: b"stream"}


class LocalKeys:
    """`keys`: str, bytes or a number is a string; a dict a hash; a list a list, of dicts a stream; a set a set."""

    def __init__(self, keys: Mapping[str, Any]) -> None:
        self._values: dict[bytes, Value] = {data(key): _stored(value) for key, value in keys.items()}
        self._commands: dict[str, Callable[..., Any]] = {
            name.removeprefix("_do_").upper(): getattr(self, name) for name in dir(self) if name.startswith("_do_")
        }

    def as_dict(self) -> dict[str, Any]:
        """All keys with their values as str; what is not UTF-8 stays bytes."""
        return {str(text(key)): _shown(value) for key, value in self._values.items()}

    def execute(self, command: Sequence[bytes]) -> Any:
        """Raises redis.ResponseError."""
        name = command[0].decode(errors="replace").upper()
        handler = self._commands.get(name)
        if handler is None:
            raise ResponseError(
                f"ERR the local key space does not know {name!r}; give replies={{{name!r}: ...}} for it, or "
                "redis=Redis(...) to ask a server"
            )
        try:
            return handler(*command[1:])
        except TypeError as error:
            if "positional argument" not in str(error):
                raise
            raise ResponseError(f"ERR wrong number of arguments for '{name.lower()}' command") from None

    def _of(self, key: bytes, kind: type, make: bool = False) -> Any:
        value = self._values.get(key)
        if value is None:
            value = kind()
            if make:
                self._values[key] = value
        if type(value) is not kind:
            raise ResponseError(WRONG_TYPE)
        return value

    # ---- keys ----

    def _do_type(self, key: bytes) -> bytes:
        return NAMES[type(self._values[key])] if key in self._values else b"none"

    def _do_exists(self, *keys: bytes) -> int:
        return sum(key in self._values for key in keys)

    def _do_del(self, *keys: bytes) -> int:
        return sum(self._values.pop(key, None) is not None for key in keys)

    _do_unlink = _do_del

    def _do_keys(self, pattern: bytes) -> list[bytes]:
        return [key for key in self._values if matches(key, pattern)]

    def _do_scan(self, cursor: bytes, *options: bytes) -> list[Any]:
        given = {name.upper(): value for name, value in zip(options[::2], options[1::2], strict=False)}
        at, count = int(cursor), int(given.get(b"COUNT", PAGE))
        keys = sorted(self._values)
        page = [key for key in keys[at : at + count] if matches(key, given.get(b"MATCH", b"*"))]
        if b"TYPE" in given:
            page = [key for key in page if self._do_type(key) == given[b"TYPE"]]
        return [b"%d" % (at + count if at + count < len(keys) else 0), page]

    def _do_expire(self, key: bytes, _seconds: bytes, *_: bytes) -> int:
        return int(key in self._values)  # nothing expires here

    # ---- strings ----

    def _do_get(self, key: bytes) -> bytes | None:
        return self._of(key, bytes) if key in self._values else None

    def _do_mget(self, *keys: bytes) -> list[bytes | None]:
        return [value if isinstance(value := self._values.get(key), bytes) else None for key in keys]

    def _do_set(self, key: bytes, value: bytes, *options: bytes) -> Any:
        words = {option.upper() for option in options}
        if (b"NX" in words and key in self._values) or (b"XX" in words and key not in self._values):
            return None
        self._values[key] = value
        return b"OK"

    def _do_incrby(self, key: bytes, by: bytes) -> int:
        try:
            found = int(self._of(key, bytes) or b"0") + int(by)
        except ValueError:
            raise ResponseError("ERR value is not an integer or out of range") from None
        self._values[key] = b"%d" % found
        return found

    def _do_incr(self, key: bytes) -> int:
        return self._do_incrby(key, b"1")

    def _do_decr(self, key: bytes) -> int:
        return self._do_incrby(key, b"-1")

    # ---- hashes ----

    def _do_hget(self, key: bytes, field: bytes) -> bytes | None:
        found: bytes | None = self._of(key, dict).get(field)
        return found

    def _do_hgetall(self, key: bytes) -> list[bytes]:
        return [word for pair in self._of(key, dict).items() for word in pair]

    def _do_hmget(self, key: bytes, *fields: bytes) -> list[bytes | None]:
        return [self._of(key, dict).get(field) for field in fields]

    def _do_hexists(self, key: bytes, field: bytes) -> int:
        return int(field in self._of(key, dict))

    def _do_hlen(self, key: bytes) -> int:
        return len(self._of(key, dict))

    def _do_hset(self, key: bytes, *pairs: bytes) -> int:
        if not pairs or len(pairs) % 2:
            raise ResponseError("ERR wrong number of arguments for 'hset' command")
        value = self._of(key, dict, make=True)
        before = len(value)
        value.update(zip(pairs[::2], pairs[1::2], strict=True))
        return len(value) - before

    def _do_hdel(self, key: bytes, *fields: bytes) -> int:
        value = self._of(key, dict)
        return self._emptied(key, value, sum(value.pop(field, None) is not None for field in fields))

    def _do_hincrby(self, key: bytes, field: bytes, by: bytes) -> int:
        value = self._of(key, dict, make=True)
        value[field] = b"%d" % (int(value.get(field, b"0")) + int(by))
        return int(value[field])

    def _emptied(self, key: bytes, value: Any, result: int) -> int:
        """Redis has no empty hashes, lists and sets."""
        if not value:
            self._values.pop(key, None)
        return result

    # ---- lists and sets ----

    def _do_rpush(self, key: bytes, *items: bytes) -> int:
        value = self._of(key, list, make=True)
        value.extend(items)
        return len(value)

    def _do_lpush(self, key: bytes, *items: bytes) -> int:
        value = self._of(key, list, make=True)
        value[:0] = reversed(items)
        return len(value)

    def _do_llen(self, key: bytes) -> int:
        return len(self._of(key, list))

    def _do_lrange(self, key: bytes, start: bytes, stop: bytes) -> list[bytes]:
        value: list[bytes] = self._of(key, list)
        first, last = (int(n) if int(n) >= 0 else max(int(n) + len(value), -1) for n in (start, stop))
        return value[max(first, 0) : last + 1]

    def _do_sadd(self, key: bytes, *members: bytes) -> int:
        value = self._of(key, set, make=True)
        before = len(value)
        value.update(members)
        return len(value) - before

    def _do_srem(self, key: bytes, *members: bytes) -> int:
        value = self._of(key, set)
        before = len(value)
        value.difference_update(members)
        return self._emptied(key, value, before - len(value))

    def _do_smembers(self, key: bytes) -> list[bytes]:
        return sorted(self._of(key, set))

    def _do_sismember(self, key: bytes, member: bytes) -> int:
        return int(member in self._of(key, set))

    def _do_scard(self, key: bytes) -> int:
        return len(self._of(key, set))

    # ---- streams ----

    def _do_xadd(self, key: bytes, id: bytes, *words: bytes) -> bytes:
        stream = self._of(key, Messages, make=True)
        if id == b"*":
            last = int(stream[-1][0].partition(b"-")[0]) if stream else 0
            id = b"%d-0" % max(last + 1, int(time.time() * 1000))
        stream.append((id if b"-" in id else id + b"-0", list(words)))
        return bytes(stream[-1][0])

    def _do_xlen(self, key: bytes) -> int:
        return len(self._of(key, Messages))

    def _do_xrange(self, key: bytes, start: bytes, end: bytes, *count: bytes) -> list[Any]:
        most = int(count[1]) if count else None
        after = start.removeprefix(b"(")
        low, high = _number(after, 0), _number(end, 1 << 63)
        chosen = [
            [id, fields]
            for id, fields in self._of(key, Messages)
            if (low < _number(id, 0) if after != start else low <= _number(id, 0)) and _number(id, 0) <= high
        ]
        return chosen[:most]

    # ---- others ----

    def _do_ping(self) -> bytes:
        return b"PONG"

    def _do_echo(self, message: bytes) -> bytes:
        return message

    def _do_time(self) -> list[bytes]:
        seconds, micro = divmod(time.time_ns() // 1000, 1_000_000)
        return [b"%d" % seconds, b"%d" % micro]


def matches(key: bytes, pattern: bytes) -> bool:
    """As KEYS and SCAN compare: `[^a]` is not a, `\\*` a star."""
    shell = pattern.decode("latin-1").replace("[^", "[!")
    for char in "*?[":
        shell = shell.replace(f"\\{char}", f"[{char}]")
    return fnmatch.fnmatchcase(key.decode("latin-1"), shell)


def data(value: Any) -> bytes:
    if isinstance(value, bytes):
        return value
    return str(value).encode("utf-8", "surrogateescape")


def text(value: Any) -> Any:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value


def _stored(value: Any) -> Value:
    match value:
        case dict():
            return {data(name): data(one) for name, one in value.items()}
        case set() | frozenset():
            return {data(one) for one in value}
        case [dict(), *_]:
            fields = ([data(word) for pair in message.items() for word in pair] for message in value)
            return Messages((b"%d-0" % number, words) for number, words in enumerate(fields, 1))
        case list() | tuple():
            return [data(one) for one in value]
        case str() | bytes() | int() | float():
            return data(value)
    raise TypeError(f"a key can't hold {type(value).__name__}; give str, bytes, a number, a dict, a list or a set")


def _shown(value: Value) -> Any:
    match value:
        case dict():
            return {text(name): text(one) for name, one in value.items()}
        case set():
            return {text(one) for one in value}
        case Messages():
            return [dict(zip(map(text, words[::2]), map(text, words[1::2]), strict=False)) for _, words in value]
        case list():
            return [text(one) for one in value]
    return text(value)


def _number(id: bytes, whole: int) -> tuple[int, int]:
    """Reads a message's id, or `-` and `+`."""
    if id in (b"-", b"+"):
        return (0, 0) if id == b"-" else (1 << 63, 1 << 63)
    milliseconds, _, number = id.partition(b"-")
    return int(milliseconds), int(number) if number else whole
