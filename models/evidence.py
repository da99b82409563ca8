"""The sentences that support an answer, as the reader's own logits tell them. Pure functions of arrays, any thread.

A short span answers "who" and "when". "Why" and "how" are answered by sentences; the reader, which learnt short spans,
still starts many likely spans in those. A sentence's logit is the log of the sum of exp over its tokens, each with its
best end within the sentence.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from shardqa.models.reader import MAX_SPAN_TOKENS, band

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from shardqa.models.reader import Span

NEAR = 2.0
"""A sentence supports the answer as well where its logit is this near to the best one's. Chosen from 0.5 to 3 on
CLAPNQ's 299 answerable questions, so its figure there is a little kind: below 2 parts of long answers were left out, 3
added sentences that say something else."""

LIMIT = 4
"""Sentences of one answer at most, its own not counted."""


def sentence_logits(
    start: NDArray[np.float32], end: NDArray[np.float32], sentences: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """(first token of each sentence, its logit), [sentences] each; the logits given are the passage's tokens', [n]."""
    firsts = np.flatnonzero(np.diff(sentences, prepend=-1))
    lasts = np.append(firsts[1:], len(sentences))
    room = np.repeat(lasts, lasts - firsts) - np.arange(len(sentences))  # tokens up to the sentence's end
    spans = band(start, end, MAX_SPAN_TOKENS)
    spans[np.arange(MAX_SPAN_TOKENS) >= room[:, None]] = -np.inf
    return firsts, np.logaddexp.reduceat(spans.max(axis=1), firsts)


def supporting(
    start: NDArray[np.float32],
    end: NDArray[np.float32],
    offsets: NDArray[np.int32],
    sentences: NDArray[np.int64],
    span: Span,
    near: float = NEAR,
) -> list[tuple[int, int]]:
    """Characters of the sentences that support ``span``, the passage's best, rising; neighbours are one.

    ``start`` and ``end`` are the passage's logits, [n]; ``offsets`` its tokens' characters, [n, 2]; ``sentences`` the
    number of each token's sentence, [n]. The sentences of the span itself are always among them.
    """
    firsts, logits = sentence_logits(start, end, sentences)
    order = np.argsort(-logits, kind="stable")[:LIMIT]
    chosen = {int(number) for number in order if logits[number] >= logits[order[0]] - near}
    own = np.searchsorted(firsts, [span.start_token, span.end_token], side="right") - 1
    chosen |= set(range(int(own[0]), int(own[1]) + 1))
    return _joined(chosen, firsts, offsets)


def own(offsets: NDArray[np.int32], sentences: NDArray[np.int64], span: Span) -> list[tuple[int, int]]:
    """Characters from the beginning of the span's first sentence to the end of its last."""
    inside = np.flatnonzero((sentences >= sentences[span.start_token]) & (sentences <= sentences[span.end_token]))
    return [(int(offsets[inside[0], 0]), int(offsets[inside[-1], 1]))]


def _joined(chosen: set[int], firsts: NDArray[np.int64], offsets: NDArray[np.int32]) -> list[tuple[int, int]]:
    lasts = [*firsts[1:], len(offsets)]
    found: list[tuple[int, int]] = []
    before = -2
    for number in sorted(chosen):
        begin, end = int(offsets[firsts[number], 0]), int(offsets[lasts[number] - 1, 1])
        if number == before + 1:
            begin = found.pop()[0]
        found.append((begin, end))
        before = number
    return found
