"""The key space of the local runner: fakeredis, filled from Python values and read back as such."""

from collections.abc import Mapping, Sequence
from typing import Any

from redis import Redis, ResponseError

from shardqa.errors import SetupError
from shardqa.extras import remedy


def data(value: Any) -> bytes:
    if isinstance(value, bytes):
        return value
    return str(value).encode("utf-8", "surrogateescape")


def text(value: bytes) -> str | bytes:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value


class LocalKeys:
    """Keys in memory: str, bytes and numbers as strings, dicts as hashes, lists as lists (of dicts: streams), and sets.

    Raises SetupError where fakeredis is not installed.
    """

    def __init__(self, keys: Mapping[str, Any]) -> None:
        try:
            from fakeredis import FakeRedis, FakeServer
        except ModuleNotFoundError as error:
            what = f"shardqa.gears.local needs {error.name}, which is not installed"
            raise SetupError(f"{what}; {remedy('functions')}") from None
        self._redis: Redis = FakeRedis(server=FakeServer(), protocol=2)
        for key, value in keys.items():
            for command in _commands_of(data(key), value):
                self._redis.execute_command(*command)  # type: ignore[no-untyped-call, unused-ignore]

    def as_dict(self) -> dict[str, Any]:
        """Returns all keys with their values as str; what is not UTF-8 stays bytes."""
        return {str(text(key)): self._value(key) for key in self.execute((b"KEYS", b"*"))}

    def execute(self, command: Sequence[bytes]) -> Any:
        """Raises redis.ResponseError."""
        connection = self._redis.connection_pool.get_connection()
        try:
            connection.send_command(*command)
            return connection.read_response(disable_decoding=True)
        except ResponseError as error:
            if "unknown command" not in str(error).lower():
                raise
            name = command[0].decode(errors="replace").upper()
            raise ResponseError(
                f"ERR the local key space does not know {name!r}; give replies={{{name!r}: ...}} for it, or "
                "redis=Redis(...) to ask a server"
            ) from None
        finally:
            self._redis.connection_pool.release(connection)

    def _value(self, key: bytes) -> Any:
        match self.execute((b"TYPE", key)):
            case b"hash":
                return _pairs(self.execute((b"HGETALL", key)))
            case b"set":
                return {text(member) for member in self.execute((b"SMEMBERS", key))}
            case b"stream":
                return [_pairs(words) for _, words in self.execute((b"XRANGE", key, b"-", b"+"))]
            case b"list":
                return [text(item) for item in self.execute((b"LRANGE", key, b"0", b"-1"))]
            case b"zset":
                return _pairs(self.execute((b"ZRANGE", key, b"0", b"-1", b"WITHSCORES")))
        return text(self.execute((b"GET", key)))


def _pairs(words: Sequence[bytes]) -> dict[str | bytes, str | bytes]:
    return dict(zip(map(text, words[::2]), map(text, words[1::2]), strict=True))


def _commands_of(key: bytes, value: Any) -> list[Sequence[bytes]]:
    """Returns the commands that store a value. Raises TypeError."""
    match value:
        case dict():
            return [(b"HSET", key, *_words(value))] if value else []
        case set() | frozenset():
            return [(b"SADD", key, *map(data, value))] if value else []
        case [dict(), *_]:
            return [(b"XADD", key, b"%d-0" % number, *_words(fields)) for number, fields in enumerate(value, 1)]
        case list() | tuple():
            return [(b"RPUSH", key, *map(data, value))] if value else []
        case str() | bytes() | int() | float():
            return [(b"SET", key, data(value))]
    raise TypeError(f"a key can't hold {type(value).__name__}; give str, bytes, a number, a dict, a list or a set")


def _words(fields: Mapping[Any, Any]) -> list[bytes]:
    return [data(word) for pair in fields.items() for word in pair]
