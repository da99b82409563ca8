"""Teachers' logits on disk, so that a row that comes again is not read by them again.

One file for each set of teachers, records one after another: a row's digest, its length, a checksum, and the logits of
each teacher in float16: start and end, perhaps evidence and relevance. A process that is killed leaves at most one
record cut short, which the next one takes away. One process writes at a time.
"""

import hashlib
import os
import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, Self

import numpy as np
from numpy.typing import NDArray

from shardqa.errors import BadData

Logits = NDArray[np.float32]  # of a row, [teachers, channels, tokens], in the order of `distil.stacked`


_HEAD = struct.Struct("<16sHI")  # a row's digest, its tokens, the CRC-32 of both and of the logits


@dataclass(slots=True)
class TeacherLogits:
    """The file, and where in it each row stands."""

    path: Path
    teachers: int
    channels: int  # logits of a token, of each teacher
    _file: BinaryIO
    # By digest: the first byte of its logits, and its tokens.
    _places: dict[bytes, tuple[int, int]] = field(default_factory=dict)

    @classmethod
    def open(cls, folder: Path, teachers: Sequence[str], channels: int = 2) -> Self:
        """Opens the file of these teachers, each given as the SHA-256 of its weights; raises BadData when it can't."""
        name = hashlib.sha256(" ".join(teachers).encode()).hexdigest()[:16]
        path = folder / f"said-{name}-{channels}.bin"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            file = path.open("a+b", buffering=0)
        except OSError as error:
            raise BadData(f"{path} can't be written: {error}; name another folder") from None
        store = cls(path, len(teachers), channels, file)
        store._scan()
        return store

    def __len__(self) -> int:
        return len(self._places)

    def get(self, row: NDArray[np.int64]) -> Logits | None:
        """Returns the logits of these wordpieces; None if they are not stored."""
        place = self._places.get(digest(row))
        if place is None:
            return None
        begins, tokens = place
        content = os.pread(self._file.fileno(), self._bytes(tokens), begins)
        return self._shaped(content, tokens)

    def put(self, row: NDArray[np.int64], logits: Logits) -> Logits:
        """Store the logits of these wordpieces; returns them as `get` will."""
        key, content = digest(row), logits.astype(np.float16).tobytes()
        record = _HEAD.pack(key, len(row), _checksum(key, len(row), content)) + content
        begins = self._file.seek(0, os.SEEK_END) + _HEAD.size
        self._file.write(record)
        self._places[key] = begins, len(row)
        return self._shaped(content, len(row))

    def close(self) -> None:
        self._file.close()

    def _scan(self) -> None:
        """Note where each row stands; what follows the last whole record is cut off."""
        end, size = 0, self.path.stat().st_size
        while end + _HEAD.size <= size:
            key, tokens, checksum = _HEAD.unpack(os.pread(self._file.fileno(), _HEAD.size, end))
            begins = end + _HEAD.size
            content = os.pread(self._file.fileno(), self._bytes(tokens), begins)
            if len(content) < self._bytes(tokens) or _checksum(key, tokens, content) != checksum:
                break
            self._places[key] = begins, tokens
            end = begins + len(content)
        if end < size:
            self._file.truncate(end)

    def _bytes(self, tokens: int) -> int:
        return self.teachers * self.channels * tokens * np.dtype(np.float16).itemsize

    def _shaped(self, content: bytes, tokens: int) -> Logits:
        return np.frombuffer(content, np.float16).astype(np.float32).reshape(self.teachers, self.channels, tokens)


def digest(row: NDArray[np.int64]) -> bytes:
    """Returns a row's name: a digest of its wordpieces, [SEP]s and all, without padding."""
    return hashlib.sha256(row.astype("<i8").tobytes()).digest()[:16]


def _checksum(key: bytes, tokens: int, content: bytes) -> int:
    return zlib.crc32(content, zlib.crc32(key + tokens.to_bytes(2, "little")))
