"""Vectors of passages and questions: rows in, whole numbers out. Pure functions on numpy arrays, no state, any thread.

An encoder gives each text a vector of length 1; the network itself stores it in STEPS a unit, int8. Products of such
vectors are sums of whole numbers, exact in float32 in any order: a passage is as near to a question on every shard.
A passage has a vector of its whole and one of each part, a few sentences: the mean of their tokens' states, which have
seen the whole (late chunking, Günther and others 2024, arXiv 2409.04701). It costs no second run of the network.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from hashlib import blake2b
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from shardqa.models import sentences
from shardqa.models.pushed import pushed_label
from shardqa.models.reader import CLS, SEP, Row

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from numpy.typing import NDArray

    from shardqa.models.tokenizer import PassageTokens, Tokenizer

MARK = "encoder=2"  # in an encoder's TAG; encoders of form 1 gave no states
LABEL = re.compile(r"\S+@([0-9a-f]{16}) ")
"""How that begins: a name and the first quarter of the network's SHA-256, which vectors are known by."""

OUTPUT = "embedding"  # the network's output, int8 [batch, WIDTH]
STATES = "states"  # its other one, float32 [batch, sequence, WIDTH]: of each token
OUTPUTS = {OUTPUT: "int8", STATES: "float"}  # their types
WIDTH = 384  # numbers of a vector
BITS = 7  # of each that are kept: the lowest, worth 1 / 400, changes no figure of retrieval
STEPS = 400
"""Whole numbers in a unit: an entry of a vector of length 1 is 0.05 on average, and 127 / 400 holds all but a few in a
million. 384 * 127 * 127 is below 2^24, so that float32 holds every sum of products exactly."""

MAX_TOKENS = 256  # wordpieces of a text, [CLS] and [SEP] included: the encoder was trained on no more
PART = 40  # wordpieces of a part, at most; a longer sentence is a part of its own
STOP = 1012  # the full stop's id in BERT's uncased vocabulary: it ends a title
LINE_END = re.compile(r"\n+")


def row(pieces: NDArray[np.int32]) -> Row:
    """``[CLS] text [SEP]``, cut to MAX_TOKENS."""
    start = pieces[: MAX_TOKENS - 2]
    input_ids = np.concatenate([[CLS], start, [SEP]]).astype(np.int64)
    return Row(input_ids, np.zeros(len(input_ids), dtype=np.int64), slice(1, len(input_ids) - 1))


@dataclass(frozen=True, slots=True)
class PassageRow:
    """``[CLS] title . passage [SEP]``: what a passage is about often stands in its title alone."""

    row: Row
    parts: NDArray[np.int64]  # tokens at which the parts begin, and the end of the last one; empty where there is one

    @classmethod
    def of(cls, tokenizer: Tokenizer, title: str, text: str) -> PassageRow:
        head, body = tokenizer.passage(title).ids, tokenizer.passage(text)
        head = np.append(head, STOP) if len(head) else head
        whole = row(np.concatenate([head, body.ids]))
        parts = np.minimum(1 + len(head) + _parts(text, body), len(whole.input_ids) - 1)
        parts = parts[np.append(True, parts[1:] > parts[:-1])]
        return cls(whole, parts if len(parts) > 2 else parts[:0])

    def vectors(self, outputs: Mapping[str, NDArray[Any]]) -> NDArray[np.int8]:
        """Returns the vectors that its outputs for this row give, int8 [1 + parts, WIDTH]: the whole first."""
        if not len(self.parts):
            return outputs[OUTPUT].astype(np.int8, copy=False)
        sums = np.add.reduceat(outputs[STATES][0, : self.parts[-1]], self.parts[:-1], axis=0)
        units = sums / np.linalg.norm(sums, axis=1, keepdims=True)
        return np.concatenate([outputs[OUTPUT], np.clip(np.rint(units * STEPS), -128, 127)]).astype(np.int8)


def _parts(text: str, pieces: PassageTokens) -> NDArray[np.int64]:
    """Returns the wordpieces at which parts of whole sentences or lines begin, and their number."""
    places = sorted([*sentences.beginnings(text), *(line.end() for line in LINE_END.finditer(text))])
    begins, parts = np.searchsorted(pieces.offsets[:, 0], places).tolist(), [0]
    for begin, end in pairwise([*begins, len(pieces)]):
        if end - parts[-1] > PART:
            parts.append(begin)
    return np.array([*parts, len(pieces)])


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
class StoredVectors:
    """A passage's vectors as its hash in Redis keeps them: 8 bytes of encoder, 8 of text, then seven bits a number.

    Eight bits a number find the same.
    """

    encoder: str  # the first quarter of the network's SHA-256, hex
    digest: bytes  # of the text that they were made of: of another text they say nothing
    vectors: bytes  # int8 [vectors, WIDTH], even numbers

    @classmethod
    def of(cls, encoder: str, title: str, text: str, output: NDArray[np.int8]) -> StoredVectors:
        """Returns the vectors that a network gave a text, each number rounded to an even one."""
        even = np.minimum((output.astype(np.int16) + 1) & -2, 126).astype(np.int8)
        return cls(encoder, text_digest(title, text), even.tobytes())

    def packed(self) -> bytes:
        bits = np.unpackbits(np.frombuffer(self.vectors, np.uint8)[:, None], axis=1)[:, :BITS]
        return bytes.fromhex(self.encoder) + self.digest + np.packbits(bits).tobytes()

    @classmethod
    def unpack(cls, value: bytes) -> StoredVectors | None:
        """Returns the vectors in a field's value; None where these are none: any client may write the field."""
        count, rest = divmod(len(value) - 16, WIDTH * BITS // 8)
        if rest or not 0 < count <= MAX_TOKENS:
            return None
        bits = np.unpackbits(np.frombuffer(value, np.uint8, offset=16)).reshape(-1, BITS)
        return cls(value[:8].hex(), value[8:16], np.packbits(bits, axis=1).tobytes())
