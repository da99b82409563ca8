"""The sentences that support an answer, as the reader's own logits show them. Pure functions of arrays, any thread.

A short span answers "who" and "when". "Why" and "how" are answered by sentences; a reader of short spans still starts
many likely spans in those. A sentence's logit is the log of the sum of exp over its tokens, each with its best end
within the sentence; its evidence, of a reader that has that output, the mean of its tokens'. How likely a sentence is
evidence follows from those and from the other sentences read (`scoring.EvidenceWeights`); which ones are shown is up to
whoever has the whole of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from shardqa.models.reader import MAX_SPAN_TOKENS, band

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from shardqa.models.reader import RowLogits, Span

PER_PASSAGE = 8
"""Sentences of a passage that may become evidence: a passage of 128 word pieces seldom has more, a table's rows do."""

LEAST_CHANCE = 0.15
"""The chance below which no sentence is shown beside an answer's own. It is not fitted: a line that suits the kinds of
texts of a fit hides what answers in texts of other kinds."""


class Sentence(NamedTuple):
    """A sentence of a text: its characters, half open, and its logits."""

    start: int
    end: int
    logit: float
    evidence: float = 0.0  # the mean of its tokens'; 0 of a reader without that output


def sentence_logits(
    start: NDArray[np.float32], end: NDArray[np.float32], sentences: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Returns (first token of each sentence, its logit), [sentences] each; `logits` are the passage's tokens', [n]."""
    is_first = np.ones(len(sentences), dtype=np.bool_)
    np.not_equal(sentences[1:], sentences[:-1], out=is_first[1:])
    firsts = is_first.nonzero()[0]
    room = sentences.searchsorted(sentences, "right") - np.arange(len(sentences))  # tokens up to the sentence's end
    spans = band(start, end, MAX_SPAN_TOKENS)
    spans[np.arange(MAX_SPAN_TOKENS) >= room[:, None]] = -np.inf
    return firsts, np.logaddexp.reduceat(np.maximum.reduce(spans, axis=1), firsts)


def likeliest(
    logits_of: RowLogits, offsets: NDArray[np.int32], sentences: NDArray[np.int64], spans: Sequence[Span] = ()
) -> list[Sentence]:
    """The PER_PASSAGE sentences of highest logit and all those that hold ``spans``, in the passage's order.

    ``logits_of`` are the passage's tokens', [n]; ``offsets`` their characters, [n, 2]; ``sentences`` the number of each
    one's sentence, [n].
    """
    firsts, logits = sentence_logits(logits_of.start, logits_of.end, sentences)
    lasts = [*(firsts[1:] - 1).tolist(), len(sentences) - 1]
    of_tokens = logits_of.evidence
    means = np.zeros(len(firsts)) if of_tokens is None else sentence_means(of_tokens, firsts)
    numbers = set((-logits).argsort(kind="stable")[:PER_PASSAGE].tolist())
    for span in spans:
        first, last = (firsts.searchsorted([span.start_token, span.end_token], "right") - 1).tolist()
        numbers |= set(range(first, last + 1))
    return [
        Sentence(
            int(offsets[firsts[number], 0]), int(offsets[lasts[number], 1]), float(logits[number]), float(means[number])
        )
        for number in sorted(numbers)
    ]


def sentence_means(evidence: NDArray[np.floating[Any]], firsts: NDArray[np.int64]) -> NDArray[np.floating[Any]]:
    """The mean of the tokens from each sentence's first up to the next one's, [sentences]."""
    return np.asarray(np.add.reduceat(evidence, firsts) / np.diff(firsts, append=len(evidence)))


def worth_showing(chances: NDArray[np.float64], words: NDArray[np.int64]) -> NDArray[np.bool_]:
    """The sentences of a text to show for the highest word F1 that is to be expected, [sentences].

    Those are the likeliest from LEAST_CHANCE on; expected words over expected words stand for the expected F1. A text
    where little is sure shows its best all the same, and one where much is sure leaves out the doubtful (Jansche 2007,
    "A maximum expected utility framework for binary sequence labeling").
    """
    order = np.argsort(-chances, kind="stable")
    hits = np.cumsum((chances * words)[order])
    f1 = 2 * hits / np.maximum(1e-9, np.cumsum(words[order]) + hits[-1:])
    rank = np.argsort(order, kind="stable")
    return (rank <= (f1.argmax() if len(f1) else 0)) & (chances >= LEAST_CHANCE)


def own(
    offsets: NDArray[np.int32], sentences: NDArray[np.int64], span: Span, evidence: NDArray[np.float32] | None = None
) -> Sentence:
    """Returns the place from the span's first sentence to its last, with the span's logit."""
    first = sentences.searchsorted(sentences[span.start_token])
    end = sentences.searchsorted(sentences[span.end_token], "right")
    mean = 0.0 if evidence is None else float(evidence[first:end].mean())
    return Sentence(int(offsets[first, 0]), int(offsets[end - 1, 1]), span.logit, mean)
