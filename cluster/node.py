"""Short, synchronous conversations with one node, by its port on loopback or its address."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

from redis import Redis

from shardqa.cluster.ports import HOST

TIMEOUT = 5.0  # seconds to connect, and for each reply


@contextmanager
def connected(port: int, host: str = HOST, timeout: float = TIMEOUT) -> Iterator[Redis]:
    with closing(Redis(host=host, port=port, socket_timeout=timeout, socket_connect_timeout=timeout)) as client:
        yield client


def command(client: Redis, *words: str | int | bytes) -> Any:
    """One command, its reply as it came. Raises redis.RedisError."""
    return client.execute_command(*words)  # type: ignore[no-untyped-call]


def text(client: Redis, *words: str | int | bytes) -> str:
    """One command whose reply is text."""
    reply = command(client, *words)
    return reply.decode(errors="replace") if isinstance(reply, bytes) else str(reply)


def pairs(reply: str) -> dict[str, str]:
    """The `name:value` lines of INFO and CLUSTER INFO."""
    split = (line.partition(":") for line in reply.splitlines())
    return {name: value.strip() for name, colon, value in split if colon}
