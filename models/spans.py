"""Spans as Hugging Face's question-answering pipeline chooses and scores them: on probabilities, window by window.

Start and end are softmaxed over the [CLS] token and the context of one window; a span's score is the product of the
two. Equal answers of several windows add up. shardqa's own choice is in reader.py and scoring.py: on logits, with
sentences and a calibrated score. Pure functions on numpy arrays.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from shardqa.errors import BadModel
from shardqa.models.reader import Row, join

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from shardqa.models.tokenizer import PassageTokens

SPARE = 10  # candidates of a window beyond twice those wanted: some turn out to be the same words


@dataclass(slots=True)
class Candidate:
    """An answer so far, characters half open."""

    score: float
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Window:
    """A run of the context's tokens, read in one row."""

    first: int  # number of its first token in the context
    row: Row


def overlapping(question: NDArray[np.int32], context: NDArray[np.int32], length: int, overlap: int) -> Iterator[Window]:
    """Rows of at most ``length`` tokens that together hold the context, each ``overlap`` tokens of the one before.

    The caller has seen to it that the question leaves more than ``overlap``.
    """
    room = length - 3 - len(question)
    assert room > overlap, (room, overlap)
    first = 0
    while True:
        yield Window(first, join(question, context[first : first + room]))
        if first + room >= len(context):
            return
        first += room - overlap


@dataclass(frozen=True, slots=True)
class Decoded:
    """The best spans of one window; tokens count from the context's first."""

    starts: NDArray[np.int64]
    ends: NDArray[np.int64]  # the last token of each, itself included
    scores: NDArray[np.float32]
    null: float  # score of "the context does not say"


def decode(window: Window, start: NDArray[np.float32], end: NDArray[np.float32], count: int, longest: int) -> Decoded:
    """The best spans of at most ``longest`` tokens, best first, given the row's logits. Raises BadModel for NaN."""
    if not len(start[window.row.passage]):
        nothing = np.zeros(0, np.int64)
        return Decoded(nothing, nothing, np.zeros(0, np.float32), 1.0)
    begins, null_start = _probabilities(start, window.row.passage)
    ends, null_end = _probabilities(end, window.row.passage)
    band = begins[:, None] * np.lib.stride_tricks.sliding_window_view(
        np.concatenate([ends, np.zeros(longest - 1, ends.dtype)]), longest
    )
    inside = np.arange(len(begins))[:, None] + np.arange(longest)[None, :] < len(begins)
    flat = np.where(inside, band, -1.0).ravel()
    best = np.argpartition(-flat, count)[:count] if count < flat.size else np.arange(flat.size)
    best = best[np.argsort(-flat[best], kind="stable")]
    best = best[flat[best] >= 0]
    first, extra = np.divmod(best, longest)
    return Decoded(
        window.first + first, window.first + first + extra, flat[best].astype(np.float32), null_start * null_end
    )


def _probabilities(logits: NDArray[np.float32], context: slice) -> tuple[NDArray[np.float32], float]:
    """Returns the probabilities (of each of the context's tokens, of [CLS])."""
    values = np.concatenate([logits[:1], logits[context]])
    if not np.isfinite(values).all():
        raise BadModel("the reader gave logits that are not finite; export or quantize it again")
    shares = np.exp(values - values.max())
    shares /= shares.sum()
    return shares[1:], float(shares[0])


def merge(text: str, tokens: PassageTokens, readings: Sequence[Decoded], to_words: bool) -> list[Candidate]:
    """The answers of all windows; those with the same words, whatever their case, are one, whose scores add up."""
    candidates: dict[str, Candidate] = {}
    for one in readings:
        for first, last, score in zip(one.starts.tolist(), one.ends.tolist(), one.scores.tolist(), strict=True):
            start, end = _characters(tokens, first, last, to_words)
            words = text[start:end].lower()
            if words in candidates:
                candidates[words].score += score
            else:
                candidates[words] = Candidate(score, start, end)
    return list(candidates.values())


def _characters(tokens: PassageTokens, first: int, last: int, to_words: bool) -> tuple[int, int]:
    """A span's characters, taken out to whole words where that is wanted."""
    if to_words:
        first = int(np.searchsorted(tokens.words, tokens.words[first], "left"))
        last = int(np.searchsorted(tokens.words, tokens.words[last], "right")) - 1
    return int(tokens.offsets[first, 0]), int(tokens.offsets[last, 1])
