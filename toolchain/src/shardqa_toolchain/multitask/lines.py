"""Data of several tasks, from files: one JSON object a line, also gzipped, or SQuAD's JSON for questions.

What a line holds depends on the kind of the task:

span        {"text", "question", "answer": [start, end] or null, "answers"?: [other accepted texts]}
answerable  {"text", "question", "label": true or false}
sequence    {"text", "label": a string, or its number in the recipe's labels, "question"?}
tokens      {"text", "spans": [[start, end, label], ...], "question"?}
            or {"tokens": [...], "labels": [...], "question"?}

Places are characters, the end is one past the last. The text of "tokens" is the tokens joined by blanks. A line without
a question is about the text alone.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shardqa.errors import BadData
from shardqa.models.tokenizer import PassageTokens, Tokenizer
from shardqa_toolchain import squad
from shardqa_toolchain.faults import Fault, Faulty, Pieces, answer_pieces, attempted, parted
from shardqa_toolchain.multitask.tasks import ANSWERABLE, BIO, OUTSIDE, SEQUENCE, SPAN, TOKENS, bio_labels
from shardqa_toolchain.multitask.words import Mark, Words, label_words


@dataclass(frozen=True, slots=True)
class SpanLabel:
    pieces: Pieces | None  # None when the text does not say
    answers: tuple[str, ...]  # all that is right to answer; empty when the text does not say


@dataclass(frozen=True, slots=True)
class AnswerableLabel:
    yes: bool
    pieces: Pieces | None = None  # where, if the data says


@dataclass(frozen=True, slots=True)
class SequenceLabel:
    label: str


@dataclass(frozen=True, slots=True)
class WordLabels:
    labels: tuple[str, ...]


Label = SpanLabel | AnswerableLabel | SequenceLabel | WordLabels


@dataclass(frozen=True, slots=True)
class TaskExample:
    """A text, perhaps with a question, and its label for one task."""

    question: str  # "" where there is none
    text: str
    question_ids: NDArray[np.int32]
    tokens: PassageTokens  # examples of one text share it
    label: Label


@dataclass(frozen=True, slots=True)
class LineForm:
    kind: str
    scheme: str
    # The labels that there are: of sequences or words; for the scheme bio the entities' types. Empty: any.
    labels: tuple[str, ...] = ()

    @property
    def known(self) -> tuple[str, ...]:
        """The labels that an example may have."""
        return bio_labels(self.labels) if self.labels and self.is_bio else self.labels

    @property
    def is_bio(self) -> bool:
        return self.kind == TOKENS and self.scheme == BIO


@dataclass(slots=True)
class Texts:
    """A tokenizer that cuts every text once, however many tasks and questions it has."""

    tokenizer: Tokenizer
    _passages: dict[str, PassageTokens] = field(default_factory=dict)

    def passage(self, text: str) -> PassageTokens:
        if text not in self._passages:
            self._passages[text] = self.tokenizer.passage(text)
        return self._passages[text]


def read(
    paths: Sequence[Path], form: LineForm, texts: Texts, skip_faulty: bool = False
) -> tuple[list[TaskExample], list[Fault]]:
    """Read all examples of a task's files.

    With ``skip_faulty`` what can't be used is left out and reported, else BadData names the first ones by line and
    counts them. Raises BadData also when nothing is left or a file can't be read.
    """
    examples: list[TaskExample] = []
    faults: list[Fault] = []
    for path in paths:
        try:
            outcomes = list(_file(path, form, texts))
        except OSError as error:
            raise BadData(f"{path} can't be read: {error.strerror}; correct the recipe") from None
        good, bad = parted(outcomes, skip_faulty, "{} examples can't be used")
        examples += good
        faults += bad
    if not examples:
        raise BadData(f"{', '.join(map(str, paths)) or 'no file'}: nothing to learn from; give a file with examples")
    return examples, faults


def _file(path: Path, form: LineForm, texts: Texts) -> Iterator[TaskExample | Fault]:
    if not path.name.removesuffix(".gz").endswith(".jsonl"):
        yield from _squad(path, form, texts)
        return
    for number, line in enumerate(squad.read_text(path).split("\n"), 1):
        if line.strip():
            yield attempted(f"{path}, line {number}", _line, line, form, texts)


def _squad(path: Path, form: LineForm, texts: Texts) -> Iterator[TaskExample | Fault]:
    if form.kind not in (SPAN, ANSWERABLE):
        raise BadData(f"{path} is taken for SQuAD's JSON, in which no {form.kind} labels are; give a .jsonl file")
    questions = squad.read_squad(path)
    passages = {paragraph.id: paragraph.text for paragraph in questions.paragraphs}
    for question in questions.questions:
        text = passages[question.document or ""]
        span = (question.starts[0], question.starts[0] + len(question.answers[0])) if question.answers else None
        where = f"{path}, question {question.id}"
        yield attempted(where, _asked, question.text, text, span, question.answers, form, texts)


def _line(line: str, form: LineForm, texts: Texts) -> TaskExample:
    try:
        entry = json.loads(line)
    except json.JSONDecodeError as error:
        raise Faulty(f"not JSON: {error.msg} (column {error.colno})") from None
    if not isinstance(entry, dict):
        raise Faulty(f"{type(entry).__name__} found, an object is needed")
    if form.kind == SPAN:
        return _span_line(entry, form, texts)
    if form.kind == ANSWERABLE:
        return _example(entry, texts, AnswerableLabel(_field(entry, "label", bool)), asks=True)
    if form.kind == SEQUENCE:
        return _example(entry, texts, SequenceLabel(_checked(_sequence_label(entry, form), form)))
    return _words_line(entry, form, texts)


def _span_line(entry: dict[str, Any], form: LineForm, texts: Texts) -> TaskExample:
    text = _field(entry, "text", str)
    if "answer" not in entry:
        raise Faulty('"answer" is missing, [start, end] or null is needed')
    place = entry["answer"]
    others = [answer for answer in entry.get("answers", []) if isinstance(answer, str)]
    span = None if place is None else _range(place, text)
    answers = tuple(dict.fromkeys([text[slice(*span)], *others])) if span else ()
    return _asked(_field(entry, "question", str), text, span, answers, form, texts)


def _asked(
    question: str, text: str, span: tuple[int, int] | None, answers: Sequence[str], form: LineForm, texts: Texts
) -> TaskExample:
    """An example of a question, whose first answer must stand at its place."""
    pieces = None if span is None else answer_pieces(text, texts.passage(text).offsets, span[0], answers[0])
    if form.kind == SPAN:
        return _example({"question": question, "text": text}, texts, SpanLabel(pieces, tuple(answers)), asks=True)
    return _example({"question": question, "text": text}, texts, AnswerableLabel(span is not None, pieces), asks=True)


def _sequence_label(entry: dict[str, Any], form: LineForm) -> str:
    label = entry.get("label")
    if isinstance(label, str):
        return label
    if not isinstance(label, int) or isinstance(label, bool):
        raise Faulty(f'"label" is {label!r}, a string or a number is needed')
    if not form.labels:
        raise Faulty(f'"label" is {label}: a number needs the recipe\'s labels')
    if not 0 <= label < len(form.labels):
        raise Faulty(f"the label {label} is out of range, 0 to {len(form.labels) - 1} is needed")
    return form.labels[label]


def _words_line(entry: dict[str, Any], form: LineForm, texts: Texts) -> TaskExample:
    text, marks = _token_marks(entry) if "tokens" in entry else _span_marks(entry, form)
    words = Words.of(texts.passage(text))
    labels = tuple(_checked(label, form) for label in label_words(words, marks, form.scheme))
    if not labels:
        raise Faulty(f"the text {text!r} has no word")
    return _example({**entry, "text": text}, texts, WordLabels(labels))


def _token_marks(entry: dict[str, Any]) -> tuple[str, list[Mark]]:
    """The text of a list of tokens, and each token's label."""
    tokens, labels = _strings(entry, "tokens"), _strings(entry, "labels")
    if len(tokens) != len(labels):
        raise Faulty(f"{len(tokens)} tokens have {len(labels)} labels, one each is needed")
    marks: list[Mark] = []
    start = 0
    for token, label in zip(tokens, labels, strict=True):
        if not token or token.split() != [token]:
            raise Faulty(f"the token {token!r} is empty or has blanks; split it")
        marks.append(Mark(start, start + len(token), label))
        start += len(token) + 1
    return " ".join(tokens), marks


def _span_marks(entry: dict[str, Any], form: LineForm) -> tuple[str, list[Mark]]:
    text = _field(entry, "text", str)
    marks = []
    for span in _field(entry, "spans", list):
        if not isinstance(span, list) or len(span) != 3 or not isinstance(span[2], str):
            raise Faulty(f"a span is {span!r}, [start, end, label] is needed")
        label = f"B-{span[2]}" if form.is_bio else span[2]
        marks.append(Mark(*_range(span[:2], text), label))
    return text, marks


def _checked(label: str, form: LineForm) -> str:
    if form.known and label not in form.known:
        raise Faulty(f"the label {label!r} is unknown; known are {', '.join(form.known)}")
    if form.is_bio and not (label == OUTSIDE or label[:2] in ("B-", "I-")):
        raise Faulty(f'the label {label!r} is neither O nor B-… nor I-…; say scheme = "plain" for labels of one word')
    return label


def _example(entry: dict[str, Any], texts: Texts, label: Label, asks: bool = False) -> TaskExample:
    text = _field(entry, "text", str)
    question = _field(entry, "question", str) if asks or "question" in entry else ""
    ids = texts.tokenizer.question(question)
    if asks and not len(ids):
        raise Faulty(f"the question is {question!r}, words are needed")
    tokens = texts.passage(text)
    if not len(tokens):
        raise Faulty(f"the text {text!r} has no word")
    return TaskExample(question, text, ids, tokens, label)


def _range(place: object, text: str) -> tuple[int, int]:
    """Two characters' numbers in order and within the text."""
    if not isinstance(place, list) or len(place) != 2 or not all(type(one) is int for one in place):
        raise Faulty(f"a place is {place!r}, [start, end] is needed")
    start, end = place
    if not 0 <= start < end <= len(text):
        raise Faulty(f"the place {start} to {end} is not within the text of {len(text)} characters")
    return start, end


def _strings(entry: dict[str, Any], name: str) -> list[str]:
    values: list[Any] = _field(entry, name, list)
    for value in values:
        if not isinstance(value, str):
            raise Faulty(f'"{name}" holds {value!r}, strings are needed')
    return values


def _field(entry: dict[str, Any], name: str, kind: type[Any]) -> Any:
    value = entry.get(name)
    if not isinstance(value, kind):
        found = f"is {type(value).__name__}" if name in entry else "is missing"
        raise Faulty(f'"{name}" {found}, {kind.__name__} is needed')
    return value
