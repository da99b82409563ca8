"""Vectors of passages and questions: rows in, whole numbers out. Pure functions on numpy arrays, no state, any thread.

An encoder gives each text a vector of length 1; the network itself stores it in STEPS a unit, int8. Products of such
vectors are sums of whole numbers, exact in float32 in any order: a passage is as near to a question on every shard.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING

import numpy as np

from shardqa.models.pushed import pushed_label
from shardqa.models.reader import CLS, SEP, Row

if TYPE_CHECKING:
    from numpy.typing import NDArray

MARK = "encoder=1"  # in an encoder's TAG
LABEL = re.compile(r"\S+@([0-9a-f]{16}) ")
"""How that begins: a name and the first quarter of the network's SHA-256, which vectors are known by."""

OUTPUT = "embedding"  # the network's output, int8 [batch, WIDTH]
WIDTH = 384  # numbers of a vector
BITS = 7  # of each that are kept: the lowest, worth 1 / 400, changes no figure of retrieval
STEPS = 400
"""Whole numbers in a unit: an entry of a vector of length 1 is 0.05 on average, and 127 / 400 holds all but a few in a
million. 384 * 127 * 127 is below 2^24, so that float32 holds every sum of products exactly."""

MAX_TOKENS = 256  # wordpieces of a text, [CLS] and [SEP] included: the encoder was trained on no more
STOP = 1012  # the full stop's id in BERT's uncased vocabulary: it ends a title


def row(pieces: NDArray[np.int32]) -> Row:
    """``[CLS] text [SEP]``, cut to MAX_TOKENS."""
    start = pieces[: MAX_TOKENS - 2]
    input_ids = np.concatenate([[CLS], start, [SEP]]).astype(np.int64)
    return Row(input_ids, np.zeros(len(input_ids), dtype=np.int64), slice(1, len(input_ids) - 1))


def passage_row(title: NDArray[np.int32], passage: NDArray[np.int32]) -> Row:
    """``[CLS] title . passage [SEP]``: what a passage is about often stands in its title alone."""
    return row(np.concatenate([title, [STOP], passage]) if len(title) else passage)


def cosine(product: NDArray[np.float32]) -> NDArray[np.float64]:
    """Returns how near vectors are, -1 to 1 but for rounding, from the exact product of their whole numbers."""
    return product.astype(np.float64) / (STEPS * STEPS)


def label(name: str, digest: str) -> str:
    """Returns the TAG of the encoder with this SHA-256 (hex), which every shard shall have."""
    return pushed_label(name, digest[:16], MARK)


def encoder_of_label(label: str) -> str | None:
    """Returns the id of the encoder that has this TAG; None for any other model."""
    match = LABEL.match(label) if label.endswith(MARK) else None
    return match[1] if match else None


def text_digest(title: str, text: str) -> bytes:
    """Returns 8 bytes that tell a passage's title and text from any other."""
    return blake2b(f"{title}\0{text}".encode("utf-8", "surrogatepass"), digest_size=8).digest()


@dataclass(frozen=True, slots=True)
class StoredVector:
    """A passage's vector as its hash in Redis keeps it: 8 bytes of encoder, 8 of text, then seven bits a number.

    Redis' allocator gives 384 bytes to that, and 448 to eight bits a number; what is found is the same.
    """

    encoder: str  # the first quarter of the network's SHA-256, hex
    digest: bytes  # of the text that it was made of: with another text the vector says nothing
    vector: bytes  # int8 [WIDTH], even numbers

    @classmethod
    def of(cls, encoder: str, title: str, text: str, output: NDArray[np.int8]) -> StoredVector:
        """Returns the vector that a network gave a text, each number rounded to an even one."""
        even = np.minimum((output.astype(np.int16) + 1) & -2, 126).astype(np.int8)
        return cls(encoder, text_digest(title, text), even.tobytes())

    def packed(self) -> bytes:
        bits = np.unpackbits(np.frombuffer(self.vector, np.uint8)[:, None], axis=1)[:, :BITS]
        return bytes.fromhex(self.encoder) + self.digest + np.packbits(bits).tobytes()

    @classmethod
    def unpack(cls, value: bytes) -> StoredVector | None:
        """Returns the vector in a field's value; None where it is no vector: any client may write the field."""
        if len(value) != 16 + WIDTH * BITS // 8:
            return None
        bits = np.unpackbits(np.frombuffer(value, np.uint8, offset=16)).reshape(WIDTH, BITS)
        return cls(value[:8].hex(), value[8:16], np.packbits(bits, axis=1).tobytes())
