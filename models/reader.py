"""Surrounds the reader's network: rows in, spans out. Pure functions on numpy arrays, no state, any thread.

A row is ``[CLS] question [SEP] passage [SEP]`` (Devlin et al. 2019, section 4.2). The network gives each token a
start and an end logit; a span's logit is the sum of its start's and its end's, searched for jointly, since the best
start and the best end taken alone may not even be in order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from shardqa.errors import BadDocument, BadModel
from shardqa.models.sentences import PARAGRAPH

if TYPE_CHECKING:
    from numpy.typing import NDArray

START, END = SPANS = ("start_logits", "end_logits")  # outputs that every reader has, float32 [rows, tokens]
EVIDENCE, RELEVANCE = "evidence", "relevance"  # outputs that a reader may have, float32 [rows, tokens] and [rows]
PAD, CLS, SEP = 0, 101, 102  # ids of the special tokens in BERT's uncased vocabulary
MAX_ROW_TOKENS = 512  # the network has this many position embeddings
MAX_SPAN_TOKENS = 30  # longest answer in wordpieces; SQuAD's own baseline uses the same bound
CROSSING = 1.5
"""Logits taken off a span that begins and ends in different sentences. Chosen on 6,000 training questions, 11 of
whose answers do: F1 is the same from 1 to 3, lower with 0.5 and 4. No span crosses an empty line."""

BUCKET_TOKENS = 16
"""Rows whose lengths round up to the same multiple of this share a batch, so at most 15 tokens of a row are padding."""

MAX_BATCH_ROWS = 16  # rows of a batch: past this a batch takes longer without being faster per row


@dataclass(frozen=True, slots=True)
class Row:
    """One question joined with one passage."""

    input_ids: NDArray[np.int64]  # vocabulary ids, int64 [n]
    token_type_ids: NDArray[np.int64]
    """0 for the question and its special tokens, 1 for the passage and the last [SEP], int64 [n]."""
    passage: slice  # the passage's tokens within the row

    @property
    def attention_mask(self) -> NDArray[np.int64]:
        """Returns 1 for every token: a row alone has no padding, int64 [n]."""
        return np.ones(len(self.input_ids), dtype=np.int64)

    def feeds(self) -> dict[str, NDArray[np.int64]]:
        """The network's inputs by name, for this row alone; int64 [1, n]."""
        return Batch((0,), self.input_ids[None], self.attention_mask[None], self.token_type_ids[None]).feeds()

    def __len__(self) -> int:
        return len(self.input_ids)


class RowLogits(NamedTuple):
    """Logits that the network gives of a row of n tokens."""

    start: NDArray[np.float32]  # that an answer starts at the token, [n]
    end: NDArray[np.float32]  # that an answer ends there, [n]
    evidence: NDArray[np.float32] | None = None
    """That the token is part of what answers, [n]; None of a reader without that output."""
    relevance: float | None = None  # that the passage answers the question at all; None of a reader without that output

    @classmethod
    def of(cls, outputs: Mapping[str, NDArray[np.float32]], line: int, length: int) -> RowLogits:
        """Cuts a row out of a batch's outputs, without its padding."""
        start, end = outputs[START][line, :length], outputs[END][line, :length]
        if EVIDENCE not in outputs or RELEVANCE not in outputs:
            return cls(start, end)
        return cls(start, end, outputs[EVIDENCE][line, :length], float(outputs[RELEVANCE][line]))

    def within(self, tokens: slice) -> RowLogits:
        """The logits of some of the row's tokens."""
        evidence = None if self.evidence is None else self.evidence[tokens]
        return RowLogits(self.start[tokens], self.end[tokens], evidence, self.relevance)


@dataclass(frozen=True, slots=True)
class Batch:
    """Rows of similar length, padded to the longest; int64 [rows, tokens] each."""

    rows: tuple[int, ...]  # which of the rows given these are, in the batch's order
    input_ids: NDArray[np.int64]
    attention_mask: NDArray[np.int64]
    token_type_ids: NDArray[np.int64]

    def feeds(self) -> dict[str, NDArray[np.int64]]:
        """The network's inputs by name."""
        return {
            "input_ids": self.input_ids,
            "attention_mask": self.attention_mask,
            "token_type_ids": self.token_type_ids,
        }


@dataclass(frozen=True, slots=True)
class Span:
    """A run of a passage's tokens, counted from the passage's first."""

    start_token: int
    end_token: int  # the last token of the span, itself included
    logit: float  # start logit + end logit, CROSSING less where the span leaves its sentence


def join(
    question_ids: NDArray[np.int32], passage_ids: NDArray[np.int32], heading_ids: NDArray[np.int32] | None = None
) -> Row:
    """Returns the row ``[CLS] question [SEP] heading passage [SEP]``; raises BadDocument past MAX_ROW_TOKENS.

    A heading tells what the passage is about; it is no part of what a span may point into.
    """
    heading = np.zeros(0, dtype=np.int32) if heading_ids is None else heading_ids
    length = len(question_ids) + len(heading) + len(passage_ids) + 3
    if length > MAX_ROW_TOKENS:
        raise BadDocument(
            f"a question of {len(question_ids)} and a passage of {len(passage_ids)} wordpieces make a row of {length}, "
            f"the reader takes {MAX_ROW_TOKENS}; split the passage"
        )
    first = len(question_ids) + 2
    input_ids = np.full(length, SEP, dtype=np.int64)
    input_ids[0] = CLS
    input_ids[1 : first - 1] = question_ids
    token_type_ids = np.zeros(length, dtype=np.int64)
    token_type_ids[first:] = 1
    input_ids[first : first + len(heading)] = heading
    first += len(heading)
    input_ids[first:] = passage_part(passage_ids)
    return Row(input_ids, token_type_ids, slice(first, length - 1))


def passage_part(passage_ids: NDArray[np.int32]) -> NDArray[np.int64]:
    """Returns a passage's part of every row: its wordpieces and the last [SEP]."""
    part = np.full(len(passage_ids) + 1, SEP, dtype=np.int64)
    part[:-1] = passage_ids
    return part


def batches(rows: Sequence[Row], max_rows: int = MAX_BATCH_ROWS, bucket_tokens: int = BUCKET_TOKENS) -> list[Batch]:
    """Returns rows of similar length in batches, shortest first; every row is in exactly one."""
    assert max_rows > 0, max_rows
    assert bucket_tokens > 0, bucket_tokens
    buckets: dict[int, list[int]] = {}
    for number, row in enumerate(rows):
        buckets.setdefault(-(-len(row) // bucket_tokens), []).append(number)
    return [
        _pad(rows, tuple(members[first : first + max_rows]))
        for _, members in sorted(buckets.items())
        for first in range(0, len(members), max_rows)
    ]


def _pad(rows: Sequence[Row], members: tuple[int, ...]) -> Batch:
    shape = len(members), max(len(rows[member]) for member in members)
    input_ids = np.full(shape, PAD, dtype=np.int64)
    attention_mask = np.zeros(shape, dtype=np.int64)
    token_type_ids = np.zeros(shape, dtype=np.int64)
    for line, member in enumerate(members):
        row = rows[member]
        input_ids[line, : len(row)] = row.input_ids
        attention_mask[line, : len(row)] = 1
        token_type_ids[line, : len(row)] = row.token_type_ids
    return Batch(members, input_ids, attention_mask, token_type_ids)


def best_spans(
    start_logits: NDArray[np.float32],
    end_logits: NDArray[np.float32],
    passage: slice,
    n_best: int,
    max_tokens: int = MAX_SPAN_TOKENS,
    sentences: NDArray[np.int64] | None = None,
) -> list[Span]:
    """Returns the spans of highest logit, best first, no two sharing a token.

    ``start_logits`` and ``end_logits`` are one row's, float32 [n]; ``passage`` is the row's slice. Each span lies
    within the passage and has at most ``max_tokens`` tokens; ``sentences`` numbers the sentence of each of the
    passage's tokens (`sentences.numbers`), without it all are taken to be one. Fewer than ``n_best`` come back when no
    more fit; of equals the earlier, then the shorter, wins. Raises BadModel when the network gave NaN or infinity.
    """
    start, end = start_logits[passage], end_logits[passage]
    if not np.isfinite(np.add.reduce(start) + np.add.reduce(end)):
        raise BadModel("the reader gave logits that are not finite; export or quantize it again")
    scores = band(start, end, max_tokens)
    if sentences is not None and scores.size and sentences[0] != sentences[-1]:
        leap = _windows(sentences, max_tokens, sentences[-1]) - sentences[:, None]
        np.subtract(scores, CROSSING, out=scores, where=leap > 0)
        scores[leap >= PARAGRAPH] = -np.inf
    spans: list[Span] = []
    while len(spans) < n_best and scores.size:
        first, extra = divmod(int(scores.argmax()), scores.shape[1])
        logit = float(scores[first, extra])
        if logit == -np.inf:
            break
        last = first + extra
        spans.append(Span(first, last, logit))
        _strike_out(scores, first, last)
    return spans


def band(start: NDArray[np.float32], end: NDArray[np.float32], width: int) -> NDArray[np.float32]:
    """Returns the logits of spans, float32 [n, width]: ``band[i, d]`` from i to i + d, minus infinity past the end."""
    return np.asarray(start[:, None] + _windows(end, width, -np.inf), dtype=np.float32)


def _windows(values: NDArray[Any], width: int, beyond: float) -> NDArray[Any]:
    """Returns [n, width]: ``windows[i, d]`` is the value at i + d, ``beyond`` past the last.

    numpy's own views of windows take longer.
    """
    wide = np.empty(len(values) + width - 1, values.dtype)
    wide[: len(values)], wide[len(values) :] = values, beyond
    return np.ndarray((len(values), width), wide.dtype, wide, strides=(wide.itemsize, wide.itemsize))


def _strike_out(band: NDArray[np.float32], first: int, last: int) -> None:
    """Sets every span that shares a token with first..last to minus infinity, in place."""
    band[first : last + 1] = -np.inf
    before = band[max(0, first - band.shape[1] + 1) : first]
    before[np.arange(band.shape[1]) >= np.arange(len(before), 0, -1)[:, None]] = -np.inf


def null_logit(start_logits: NDArray[np.float32], end_logits: NDArray[np.float32]) -> float:
    """The logit of "the passage does not say": start and end at [CLS], the row's first token."""
    return float(start_logits[0]) + float(end_logits[0])
