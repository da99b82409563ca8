"""Data of several tasks: one JSON object a line (.jsonl), also gzipped, or SQuAD's JSON for questions.

span        {"text", "question", "answer": [start, end] or null}
answerable  {"text", "question", "label": true or false}
text        {"text", "label": "...", "question"?}
tokens      {"text", "spans": [[start, end, "label"], ...], "question"?}

Places are characters, the end is one past the last.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shardqa.errors import BadData
from shardqa_toolchain import squad
from shardqa_toolchain.multitask.tasks import ANSWERABLE, NO, SPAN, TEXT, TOKENS, YES

Mark = tuple[int, int, str]  # characters and their label


@dataclass(frozen=True, slots=True)
class Example:
    """A text, perhaps with a question, and what is right to say of it in one task."""

    text: str
    question: str
    label: str = ""  # of the whole row
    marks: tuple[Mark, ...] = ()  # of places; a span's answer has no label
    answers: tuple[str, ...] = ()  # all texts that are right for a span; none where the text does not say


def read(path: Path, kind: str) -> list[Example]:
    """Reads a task's file; raises BadData with the line that can't be used."""
    examples = list(_squad(path, kind) if not path.name.removesuffix(".gz").endswith(".jsonl") else _lines(path, kind))
    if not examples:
        raise BadData(f"{path} has no example; give a file with some")
    return examples


def _squad(path: Path, kind: str) -> Iterator[Example]:
    if kind not in (SPAN, ANSWERABLE):
        raise BadData(f"{path} is taken for SQuAD's JSON, in which no labels of {kind} are; give a .jsonl file")
    content = squad.read_squad(path)
    texts = {paragraph.id: paragraph.text for paragraph in content.paragraphs}
    for one in content.questions:
        marks = tuple((start, start + len(text), "") for start, text in zip(one.starts, one.answers, strict=True))[:1]
        label = "" if kind == SPAN else YES if one.answers else NO
        yield Example(texts[one.document or ""], one.text, label, marks, one.answers)


def _lines(path: Path, kind: str) -> Iterator[Example]:
    for number, line in enumerate(squad.read_text(path).split("\n"), 1):
        if line.strip():
            try:
                yield _example(json.loads(line), kind)
            except (ValueError, KeyError, TypeError) as error:
                fault = f"{error} is missing" if isinstance(error, KeyError) else str(error)
                raise BadData(f"{path}, line {number}: {fault}; see docs/models.md for a line of {kind}") from None


def _example(entry: dict[str, Any], kind: str) -> Example:
    text, question, label = entry["text"], entry.get("question", ""), ""
    marks: list[Any] = []
    if kind in (SPAN, ANSWERABLE) and not question:
        raise KeyError("question")
    if kind == SPAN:
        marks = [] if entry["answer"] is None else [[*entry["answer"], ""]]
    elif kind == TOKENS:
        marks = entry["spans"]
    else:
        label = str(entry["label"]) if kind == TEXT else YES if entry["label"] else NO
    for start, end, _ in marks:
        if not 0 <= start < end <= len(text):
            raise ValueError(f"[{start}, {end}] is no place of a text of {len(text)} characters")
    answers = tuple(text[start:end] for start, end, _ in marks) if kind == SPAN else ()
    return Example(text, question, label, tuple((start, end, name) for start, end, name in marks), answers)
