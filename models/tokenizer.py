"""Text to wordpieces and back to exact characters.

The rules (uncased WordPiece, BERT's normaliser) live in the reader's own ``tokenizer.json``; this wrapper adds
what an answer needs: character offsets that hold for any Unicode text, no special tokens out of a user's text,
and a bound on questions. A Tokenizer never changes after loading and may be shared between threads.
"""

from __future__ import annotations

import itertools
import re
import unicodedata
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import tokenizers

from shardqa import keys
from shardqa.errors import BadData, BadDocument, QuestionTooLong, ShardqaError

if TYPE_CHECKING:
    from numpy.typing import NDArray

PART = 2_048
"""Characters of a text cut at a time, or up to the next blank: making Python's numbers of the pieces keeps the
interpreter's lock, and questions wait."""

MAX_QUESTION_TOKENS = 128
"""Wordpieces of a question, its question mark included. Real ones of meetings have up to 76; passages have 320 at most,
so that a row stays below the reader's 512."""

QUESTION_MARK = "?"

A_BLANK = re.compile(r"[ \n]")

TOKENIZER_FILE = "tokenizer.json"


@dataclass(frozen=True, slots=True)
class PassageTokens:
    """The wordpieces of a text, without special tokens."""

    ids: NDArray[np.int32]  # vocabulary ids, int32 [n]
    offsets: NDArray[np.int32]
    """Where each piece stands in the text, int32 [n, 2]: first character and one past the last, as Python indexes."""
    words: NDArray[np.int32]
    """Which word or mark, from 0, each piece is of, int32 [n]: a text cut where this changes keeps its pieces."""

    def __len__(self) -> int:
        return len(self.ids)


class Tokenizer:
    """The reader's uncased WordPiece tokenizer."""

    def __init__(self, pieces: tokenizers.Tokenizer) -> None:
        # A text may contain the characters "[SEP]"; they must not become the separator.
        pieces.encode_special_tokens = True
        pieces.no_truncation()
        pieces.no_padding()
        self._pieces = pieces

    @classmethod
    def load(cls, folder: Path | str) -> Tokenizer:
        """Loads ``tokenizer.json`` of a reader's folder; FileNotFoundError names the file that is missing."""
        path = Path(folder) / TOKENIZER_FILE
        return cls.parse(path.read_text(encoding="utf-8"))

    @classmethod
    def parse(cls, text: str) -> Tokenizer:
        """Makes a tokenizer of the text of a ``tokenizer.json``."""
        return cls(tokenizers.Tokenizer.from_str(text))

    def passage(self, text: str) -> PassageTokens:
        """Cuts a text of any length into wordpieces with exact character offsets.

        Starts never decrease and every piece covers at least one character; pieces of one character that normalises to
        several (Hangul syllables) share it. Raises BadDocument on lone surrogates.
        """
        edges = _edges(text)
        encodings = self._encode([text[begin:end] for begin, end in itertools.pairwise(edges)], BadDocument)
        ids: list[NDArray[np.int32]] = []
        offsets: list[NDArray[np.int32]] = []
        words: list[NDArray[np.int32]] = []
        first = 0  # word of a part
        for begin, encoding in zip(edges, encodings, strict=False):
            ids.append(np.asarray(encoding.ids, dtype=np.int32))
            offsets.append(np.asarray(encoding.offsets, dtype=np.int32).reshape(-1, 2) + begin)
            words.append(np.asarray(encoding.word_ids, dtype=np.int32) + first)
            first = int(words[-1][-1]) + 1 if len(words[-1]) else first
        places = np.concatenate(offsets)
        _take_in_marks(text, places)
        return PassageTokens(np.concatenate(ids), places, np.concatenate(words))

    def short(self, text: str) -> tuple[NDArray[np.int32], int, int]:
        """Returns (ids, where the first piece begins, where the last one ends) of a text of at most PART characters.

        The ids are those of `passage`, in a third of the time. Raises BadDocument on lone surrogates.
        """
        (encoding,) = self._encode([text], BadDocument)
        offsets = encoding.offsets
        if not offsets:
            return np.zeros(0, dtype=np.int32), 0, 0
        last = np.asarray(offsets[-1:], dtype=np.int32)
        _take_in_marks(text, last)
        return np.asarray(encoding.ids, dtype=np.int32), offsets[0][0], int(last[0, 1])

    def question(self, text: str) -> NDArray[np.int32]:
        """Cuts a question into wordpieces, int32 [n], its question mark put back; n is 0 where it has no words.

        Keys hold questions without their question mark, but the reader learnt from questions that have one: without it,
        it loses 1.9 F1 on SQuAD. Raises QuestionTooLong past MAX_QUESTION_TOKENS, BadData on lone surrogates.
        """
        encoding, mark = self._encode([keys.without_end(keys.folded(text)), QUESTION_MARK], BadData)
        if not encoding.ids:
            return np.zeros(0, dtype=np.int32)
        ids = np.asarray([*encoding.ids, *mark.ids], dtype=np.int32)
        if len(ids) > MAX_QUESTION_TOKENS:
            raise QuestionTooLong(
                f"the question has {len(ids)} wordpieces, at most {MAX_QUESTION_TOKENS}; use fewer words"
            )
        return ids

    def _encode(self, parts: list[str], fault: type[ShardqaError]) -> list[tokenizers.Encoding]:
        """Returns a batch's encodings; one text is a batch, too: only those leave the interpreter's lock to others."""
        try:
            return self._pieces.encode_batch(parts, add_special_tokens=False)
        except (TypeError, UnicodeEncodeError):
            # The Rust side takes UTF-8 only; JSON can spell what UTF-8 can't.
            text = "".join(parts)
            place = _lone_surrogate(text)
            if place is None:
                raise
            raise fault(f"character {place} is the lone surrogate U+{ord(text[place]):04X}; send valid UTF-8") from None


def _edges(text: str) -> list[int]:
    """Returns the ends of parts whose pieces are those of the text: after blanks, from 0 to its end."""
    edges = [0]
    while len(text) - edges[-1] > PART:
        cut = A_BLANK.search(text, edges[-1] + PART)
        edges.append(len(text) if cut is None else cut.end())
    return edges if edges[-1] == len(text) and text else [*edges, len(text)]


def _lone_surrogate(text: str) -> int | None:
    """The index of the first lone surrogate of the text."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        return error.start
    return None


def _take_in_marks(text: str, offsets: NDArray[np.int32]) -> None:
    """Stretches each piece over the combining marks that follow it and the rest of a Hangul syllable, in place.

    The normaliser drops or joins them, so of "cafe" + U+0301 it reports four characters: an answer would lose one.
    """
    if text.isascii():
        return
    starts = offsets[:, 0]
    limits = np.append(starts, len(text))[np.searchsorted(starts, starts, "right")]  # a mark may be a piece itself
    for piece, (end, limit) in enumerate(zip(offsets[:, 1].tolist(), limits.tolist(), strict=True)):
        while end < limit and (unicodedata.category(text[end]) == "Mn" or "\u1160" <= text[end] <= "\u11ff"):
            end += 1
        offsets[piece, 1] = end
