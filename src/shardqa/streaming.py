"""Commands with files in them, sent piece by piece: redis-py copies a whole command several times before it sends.

A file is read while it is sent, never held, and must stay as it is meanwhile.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from redis.asyncio.cluster import ClusterNode
from redis.exceptions import ConnectionError

from shardqa.errors import BadModel

PIECE = 1 << 20  # bytes that are read and sent at once
PART = 256 << 20  # bytes of a file in one word: Redis takes no word longer than 512 MiB

State: TypeAlias = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class StreamedFile:
    path: Path
    state: State  # when it was looked at first

    @classmethod
    def of(cls, path: Path) -> StreamedFile:
        """Raises OSError."""
        with path.open("rb") as file:
            return cls(path, _state(file.fileno()))

    @property
    def size(self) -> int:
        return self.state[1]

    def sha256(self) -> str:
        """Returns the file's digest in hex. Raises OSError."""
        with self.path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()

    def parts(self) -> list[FilePart]:
        """The file as words of a command; an empty one is one empty word."""
        return [FilePart(self, at, min(PART, self.size - at)) for at in range(0, max(self.size, 1), PART)]


@dataclass(frozen=True, slots=True)
class FilePart:
    """A word whose bytes lie in a file."""

    file: StreamedFile
    start: int
    length: int

    def pieces(self) -> Iterator[bytes]:
        """Raises OSError; BadModel where the file is no longer what it was."""
        with self.file.path.open("rb", buffering=0) as file:
            self._check(file.fileno())
            file.seek(self.start)
            for at in range(0, self.length, PIECE):
                size = min(PIECE, self.length - at)
                piece = file.read(size)
                if len(piece) != size:
                    raise self._changed()
                yield piece
            self._check(file.fileno())

    def _check(self, fd: int) -> None:
        if _state(fd) != self.file.state:
            raise self._changed()

    def _changed(self) -> BadModel:
        return BadModel(f"{self.file.path} changed while it was sent; send it again when it is written")


def parts_of(content: bytes | Path) -> list[FilePart | memoryview]:
    """A file, or bytes, as words of a command. Raises OSError."""
    if isinstance(content, Path):
        return [*StreamedFile.of(content).parts()]
    view = memoryview(content)
    return [view[at : at + PART] for at in range(0, max(len(view), 1), PART)]


def packed(words: Sequence[Any]) -> Iterator[bytes | memoryview]:
    """A command as Redis reads it, in pieces of at most PIECE bytes and small words. Raises as FilePart.pieces."""
    head = [b"*%d\r\n" % len(words)]
    for word in words:
        if isinstance(word, FilePart | memoryview):
            length = len(word) if isinstance(word, memoryview) else word.length
            yield b"".join([*head, b"$%d\r\n" % length])
            yield from word.pieces() if isinstance(word, FilePart) else _slices(word)
            head = [b"\r\n"]
        else:
            raw = word if isinstance(word, bytes) else str(word).encode()
            head.append(b"$%d\r\n%b\r\n" % (len(raw), raw))
    yield b"".join(head)


def is_streamed(words: Sequence[Any]) -> bool:
    return any(isinstance(word, FilePart | memoryview) for word in words)


def exchange(connection: Any, words: Sequence[Any], asking: bool = False) -> Any:
    """The raw reply on a connection of redis-py. Raises RedisError, BadModel."""
    if asking:
        connection.send_command("ASKING")
        connection.read_response()
    connection.send_packed_command(packed(words))
    return connection.read_response(disable_decoding=True)


async def exchange_async(connection: Any, words: Sequence[Any], asking: bool = False) -> Any:
    """Exchanges on a connection of redis.asyncio."""
    if asking:
        await connection.send_command("ASKING")
        await connection.read_response()
    await _send(connection, words)
    return await connection.read_response(disable_decoding=True)


async def exchange_on(node: ClusterNode, words: Sequence[Any], asking: bool = False) -> Any:
    """Exchanges with a node of a cluster's client."""
    connection = node.acquire_connection()
    try:
        await node.disconnect_if_needed(connection)
        return await exchange_async(connection, words, asking)
    finally:
        try:
            await node.disconnect_if_needed(connection)
        finally:
            node.release(connection)


def exchange_through(redis: Any, node: Any, words: Sequence[Any], asking: bool = False) -> Any:
    """Exchanges through a client: with a node of its cluster, or where `node` is None with the one that it knows."""
    pool = (redis if node is None else redis.get_redis_connection(node)).connection_pool
    connection = pool.get_connection()
    try:
        return exchange(connection, words, asking)
    finally:
        pool.release(connection)


async def exchange_through_async(redis: Any, node: Any, words: Sequence[Any], asking: bool = False) -> Any:
    """Exchanges through a client of redis.asyncio, as `exchange_through`."""
    if node is not None:
        return await exchange_on(node, words, asking)
    pool = redis.connection_pool
    connection = await pool.get_connection()
    try:
        return await exchange_async(connection, words, asking)
    finally:
        await pool.release(connection)


async def _send(connection: Any, words: Sequence[Any]) -> None:
    """The loop never waits for the disk."""
    pieces = packed(words)
    await connection.connect()
    try:
        while piece := await asyncio.to_thread(next, pieces, b""):
            if not connection.is_connected:
                raise ConnectionError("the connection was closed while a file was sent")
            await connection.send_packed_command([piece], check_health=False)
    except BaseException:
        await connection.disconnect(nowait=True)  # half a command is on its way
        raise


def _slices(view: memoryview) -> Iterator[memoryview]:
    return (view[at : at + PIECE] for at in range(0, len(view), PIECE))


def _state(fd: int) -> State:
    status = os.fstat(fd)
    return status.st_ino, status.st_size, status.st_mtime_ns
