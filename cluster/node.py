"""Short, synchronous conversations with one node, by its port on loopback or its address."""

from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from typing import Any

from redis import Redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from shardqa.cluster.ports import HOST

TIMEOUT = 5.0  # seconds to connect, and for each reply


@contextmanager
def connected(port: int, host: str = HOST, timeout: float = TIMEOUT) -> Iterator[Redis]:
    with closing(client(host, port, timeout=timeout)) as connection:
        yield connection


def client(
    host: str,
    port: int,
    user: str | None = None,
    password: str | None = None,
    timeout: float = TIMEOUT,
    tls: Mapping[str, Any] | None = None,
) -> Redis:
    """Returns a client that tries once: its caller knows whether to try again. `tls`: Settings.tls_options."""
    return Redis(
        host=host,
        port=port,
        username=user,
        password=password,
        socket_timeout=timeout,
        socket_connect_timeout=timeout,
        retry=Retry(NoBackoff(), 0),
        **(tls or {}),
    )


def command(connection: Redis, *words: str | int | bytes) -> Any:
    """Sends one command; returns its reply as it came. Raises redis.RedisError."""
    return connection.execute_command(*words)


def text(connection: Redis, *words: str | int | bytes) -> str:
    """Sends one command whose reply is text; returns it as str."""
    reply = command(connection, *words)
    return reply.decode(errors="replace") if isinstance(reply, bytes) else str(reply)


def pairs(reply: str) -> dict[str, str]:
    """Parses the `name:value` lines of INFO and CLUSTER INFO."""
    split = (line.partition(":") for line in reply.splitlines())
    return {name: value.strip() for name, colon, value in split if colon}
