"""Vectors of passages and questions: rows in, whole numbers out. Pure functions on numpy arrays, no state, any thread.

An encoder gives each text a vector of length 1; the network itself stores it in STEPS a unit, int8. A question's is
kept so, a passage's in four bits a number. Products are sums of whole numbers, exact in float32 in any order: a passage
is as near to a question on every shard.
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
STEPS = 400
"""Whole numbers in a unit: an entry of a vector of length 1 is 0.05 on average, and 127 / 400 holds all but a few in a
million."""

HALF = WIDTH // 2  # bytes of a passage's vector: four bits a number, of the first half the lower ones
STEP = 6  # of these numbers, in those of the network: LEVELS of them hold all but one in sixty
LEVELS = 16
FORM = b"\4"  # in front of vectors of four bits; those of seven, which an older version wrote, are read

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


def packed(numbers: NDArray[np.int8]) -> bytes:
    """Returns vectors [n, WIDTH] in four bits a number, HALF bytes each; docs/decisions.md has what they find."""
    levels = np.clip(numbers // STEP + LEVELS // 2, 0, LEVELS - 1).astype(np.uint8)
    return (levels[:, :HALF] | levels[:, HALF:] << 4).tobytes()


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
    """A passage's vectors as its hash in Redis keeps them: 8 bytes of encoder, 8 of text, the form, then `packed`."""

    encoder: str  # the first quarter of the network's SHA-256, hex
    digest: bytes  # of the text that they were made of: of another text they say nothing
    vectors: bytes  # `packed`

    @classmethod
    def of(cls, encoder: str, title: str, text: str, output: NDArray[np.int8]) -> StoredVectors:
        """Returns the vectors that a network gave a text."""
        return cls(encoder, text_digest(title, text), packed(output))

    def packed(self) -> bytes:
        return bytes.fromhex(self.encoder) + self.digest + FORM + self.vectors

    @classmethod
    def unpack(cls, value: bytes) -> StoredVectors | None:
        """Returns the vectors in a field's value; None where these are none: any client may write the field."""
        head, vectors = value[:16], value[17:] if value[16:17] == FORM and len(value) % 2 else _of_seven(value[16:])
        if len(vectors) % HALF or not 0 < len(vectors) <= MAX_TOKENS * HALF:
            return None
        return cls(head[:8].hex(), head[8:], vectors)


def _of_seven(value: bytes) -> bytes:
    """Returns vectors that an older version wrote, in seven bits a number; nothing where these are none."""
    if len(value) % (WIDTH * 7 // 8):
        return b""
    bits = np.unpackbits(np.frombuffer(value, np.uint8)).reshape(-1, 7)
    return packed(np.packbits(bits, axis=1).view(np.int8).reshape(-1, WIDTH))
