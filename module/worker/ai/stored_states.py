"""States of a passage as the value of a `states:` key: which model and tokens they are of, the numbers, a checksum.

What is damaged, cut or of anything else is read as None, and nobody uses it.
"""

from __future__ import annotations

import hashlib
import struct
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from shardqa.module.worker.ai.array_cache import Arrays

HEAD = struct.Struct("<8s32sII")  # MAGIC, key of split_model.py, tokens, numbers of a token
MAGIC = b"sqstate1"
CHECKSUM = 8  # bytes at the end, of all before


def stored(key: bytes, packed: Arrays) -> bytes:
    steps, scale = packed
    content = HEAD.pack(MAGIC, key, *steps.shape) + scale.astype("<f4").tobytes() + steps.tobytes()
    return content + _checksum(content)


def loaded(key: bytes, value: bytes) -> Arrays | None:
    """Arrays that can't be written to; they share the value's memory."""
    if len(value) < HEAD.size + CHECKSUM:
        return None
    magic, of, tokens, width = HEAD.unpack_from(value)
    size = HEAD.size + tokens * (4 + width) + CHECKSUM
    if (magic, of, size) != (MAGIC, key, len(value)) or _checksum(memoryview(value)[:-CHECKSUM]) != value[-CHECKSUM:]:
        return None
    scale = np.frombuffer(value, "<f4", tokens, HEAD.size)
    steps = np.frombuffer(value, np.int8, tokens * width, HEAD.size + 4 * tokens)
    return steps.reshape(tokens, width), scale.reshape(tokens, 1)


def _checksum(content: bytes | memoryview) -> bytes:
    return hashlib.blake2b(content, digest_size=CHECKSUM).digest()
