"""From logits to results with exact places in the text. Pure functions on numpy arrays."""

import functools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shardqa.errors import BadModel
from shardqa.models.reader import Row, best_spans, null_logit
from shardqa.models.tokenizer import PassageTokens
from shardqa_toolchain.multitask.tasks import ANSWERABLE, CONTROL, PLAIN, SEQUENCE, SPAN, Task
from shardqa_toolchain.multitask.words import Mark, Words, entities

Floats = NDArray[np.float32]


YES = 1  # the place of "answerable" among the control form's classes of that task


@dataclass(frozen=True, slots=True)
class SpanResult:
    """The best span: text[start:end]."""

    answer: str
    start: int
    end: int
    margin: float  # log-odds of the span against "the text does not say"

    @property
    def is_said(self) -> bool:
        """Whether an answer is likelier than none."""
        return self.margin > 0


@dataclass(frozen=True, slots=True)
class AnswerableResult:
    probability: float


@dataclass(frozen=True, slots=True)
class SequenceResult:
    label: str
    probability: float


@dataclass(frozen=True, slots=True)
class WordsResult:
    words: tuple[Mark, ...]  # every word with its label
    # Runs of words that are one thing; in the scheme plain every word that is labelled otherwise than O.
    entities: tuple[Mark, ...]


Result = SpanResult | AnswerableResult | SequenceResult | WordsResult


@dataclass(frozen=True, slots=True)
class DecodedWindow:
    """A row and what the network said of it for one task."""

    first: int  # the text's wordpiece that the row's passage begins with
    row: Row
    logits: tuple[Floats, ...]  # with heads those of the task's outputs; in the control form [tokens, classes]


def decode(
    form: str, task: Task, text: str, tokens: PassageTokens, words: Words, windows: Sequence[DecodedWindow]
) -> Result:
    """A task's result; raises BadModel when a logit is not finite."""
    if not all(np.isfinite(logits).all() for window in windows for logits in window.logits):
        raise BadModel(f"the network gave logits of {task.name} that are not finite; export or quantize it again")
    if task.kind == SPAN:
        return _span(form, text, tokens, windows)
    if task.kind == ANSWERABLE:
        return AnswerableResult(max(_answerable(form, window) for window in windows))
    if task.kind == SEQUENCE:
        return _sequence(form, task, windows)
    return _words(task, words, windows)


def _answerable(form: str, window: DecodedWindow) -> float:
    (logits,) = window.logits
    odds = logits[0, YES] - logits[0, 1 - YES] if form == CONTROL else logits
    return float(_probabilities(np.array([0.0, odds]))[1])


def _sequence(form: str, task: Task, windows: Sequence[DecodedWindow]) -> SequenceResult:
    logits = np.mean([window.logits[0][0] if form == CONTROL else window.logits[0] for window in windows], axis=0)
    best = int(logits.argmax())
    return SequenceResult(task.labels[best], float(_probabilities(logits)[best]))


def _span(form: str, text: str, tokens: PassageTokens, windows: Sequence[DecodedWindow]) -> SpanResult:
    best = SpanResult("", 0, 0, -np.inf)
    for window in windows:
        start, end = span_logits(window.logits[0]) if form == CONTROL else window.logits
        for span in best_spans(start, end, window.row.passage, n_best=1):
            margin = span.logit - null_logit(start, end)
            if margin > best.margin:
                first, last = window.first + span.start_token, window.first + span.end_token
                place = int(tokens.offsets[first, 0]), int(tokens.offsets[last, 1])
                best = SpanResult(text[slice(*place)], *place, margin)
    return best


def span_logits(logits: Floats) -> tuple[Floats, Floats]:
    """Start and end logits out of those of O, B and I, [tokens, 3].

    Their sum for a span is its log-odds against "every token is O": the sum of B - O at its first token and of I - O at
    the others. At the row's first token both are 0, so that the null logit is 0.
    """
    begin, inside = (logits[:, place] - logits[:, 0] for place in (1, 2))
    inside = np.cumsum(inside, dtype=np.float64)
    start, end = (begin - inside).astype(np.float32), inside.astype(np.float32)
    start[0] = end[0] = 0
    return start, end


def _words(task: Task, words: Words, windows: Sequence[DecodedWindow]) -> WordsResult:
    logits = _word_logits(words, windows, len(task.labels))
    places = logits.argmax(-1) if task.scheme == PLAIN else best_tags(logits, task.labels)
    labels = [task.labels[place] for place in places.tolist()]
    marks = zip(words.start.tolist(), words.end.tolist(), labels, strict=True)
    return WordsResult(tuple(Mark(*mark) for mark in marks), tuple(entities(words, labels, task.scheme)))


def _word_logits(words: Words, windows: Sequence[DecodedWindow], classes: int) -> Floats:
    """The logits of each word, float32 [words, classes], in the window in which it stands farthest from an edge."""
    logits = np.zeros((len(words), classes), dtype=np.float32)
    nearest = np.full(len(words), -1, dtype=np.int64)
    for window in windows:
        tokens = window.row.passage.stop - window.row.passage.start
        place = words.first - window.first
        distance = np.where((place >= 0) & (place < tokens), np.minimum(place, tokens - 1 - place), -1)
        chosen = np.flatnonzero(distance > nearest)
        logits[chosen] = window.logits[0][window.row.passage][place[chosen]]
        nearest[chosen] = distance[chosen]
    return logits


def best_tags(logits: Floats, labels: tuple[str, ...]) -> NDArray[np.int64]:
    """The likeliest tags of words that are a reading of B, I and O at all, int64 [words]: no I but after its own kind.

    Where the best tag of each word for itself is no such reading, the largest sum of logits that is one (Viterbi 1967).
    """
    alone: NDArray[np.int64] = logits.argmax(-1)
    barred = _barred(labels)
    if not barred[np.concatenate([[-1], alone[:-1]]), alone].any():
        return alone
    score, back = logits[0] + barred[-1], np.zeros(logits.shape, dtype=np.int64)
    for word in range(1, len(logits)):
        ways = score[:, None] + barred[:-1]
        back[word] = ways.argmax(0)
        score = ways.max(0) + logits[word]
    tags = np.empty(len(logits), dtype=np.int64)
    tags[-1] = score.argmax()
    for word in range(len(logits) - 1, 0, -1):
        tags[word - 1] = back[word, tags[word]]
    return tags


@functools.lru_cache(maxsize=64)  # models have few tasks
def _barred(labels: tuple[str, ...]) -> Floats:
    """-inf where a tag can't follow another, else 0, float32 [labels + 1, labels]; the last row is a text's begin."""
    table = np.zeros((len(labels) + 1, len(labels)), dtype=np.float32)
    for place, label in enumerate(labels):
        if label.startswith("I-"):
            before = [other in (label, f"B-{label[2:]}") for other in labels]
            table[:, place] = np.where([*before, False], 0, -np.inf)
    return table


def _probabilities(logits: Floats | NDArray[np.float64]) -> NDArray[np.float64]:
    powers = np.exp(logits.astype(np.float64) - float(logits.max()))
    shares: NDArray[np.float64] = powers / powers.sum()
    return shares
