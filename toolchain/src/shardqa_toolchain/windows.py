"""Passages longer than a row: read in overlapping windows, of which the best span counts, as in the original BERT."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from shardqa.models.reader import Row, best_spans, join, null_logit

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

WINDOW_TOKENS = 384  # length of a row, as in the original BERT's evaluation on SQuAD
STRIDE_TOKENS = 128  # how far each window of a long passage begins after the one before


@dataclass(frozen=True, slots=True)
class WindowedSpan:
    """The best span of a passage read in windows; tokens count from the passage's first."""

    start_token: int
    end_token: int  # the last token of the span, itself included
    logit: float
    null_logit: float  # of the window that is surest to hold an answer: the lowest


def windows(
    question: NDArray[np.int32], passage: NDArray[np.int32], length: int = WINDOW_TOKENS
) -> Iterator[tuple[int, Row]]:
    """Rows of at most ``length`` tokens that together hold the whole passage, each with its first token's number."""
    room = length - 3 - len(question)
    assert room >= STRIDE_TOKENS, f"{len(question)} wordpieces of a question leave gaps between windows of {length}"
    first = 0
    while True:
        yield first, join(question, passage[first : first + room])
        if first + room >= len(passage):
            return
        first += STRIDE_TOKENS


def best_span(
    rows: Sequence[tuple[int, Row]],
    logits: Sequence[tuple[NDArray[np.float32], NDArray[np.float32]]],
    sentences: NDArray[np.int64],
) -> WindowedSpan | None:
    """Returns the span of highest logit over a passage's `windows`, whose logits are float32 [tokens] each.

    ``sentences`` numbers the sentence of each of the passage's tokens (`sentences.numbers`). None where the passage has
    no token. Raises BadModel when the network gave NaN or infinity.
    """
    spans = [
        (span.logit, first + span.start_token, first + span.end_token)
        for (first, row), (start, end) in zip(rows, logits, strict=True)
        for span in best_spans(start, end, row.passage, n_best=1, sentences=sentences[first : first + _length(row)])
    ]
    if not spans:
        return None
    logit, first_token, last_token = max(spans, key=lambda span: span[0])
    return WindowedSpan(first_token, last_token, logit, min(null_logit(start, end) for start, end in logits))


def _length(row: Row) -> int:
    """Tokens of the passage in a row."""
    return len(row.input_ids[row.passage])
