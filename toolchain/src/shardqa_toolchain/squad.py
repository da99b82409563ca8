"""Question sets from files: SQuAD's JSON (1.1 and 2.0) and one JSON object per line, each also gzipped.

A line of the second kind is ``{"id", "question", "answers": [..], "document"}``; no answers and document null mean
that the documents don't say.
"""

import gzip
import hashlib
import json
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from shardqa.errors import BadData

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Paragraph:
    """One context of a SQuAD article."""

    id: str  # ``<title>/<number>``: the article's title as the file spells it and the context's place in it, from 0
    title: str
    text: str


@dataclass(frozen=True, slots=True)
class SquadQuestion:
    """A question with what is right to answer."""

    id: str
    text: str
    answers: tuple[str, ...]
    """Accepted answers in the file's order, repeats removed; none means that it can't be answered."""
    document: str | None  # the paragraph (SQuAD) or document that it is about; None where there is none
    starts: tuple[int, ...] = ()
    """The character at which the file says that each answer begins, -1 where it does not say; empty for a file of
    questions alone."""


@dataclass(frozen=True, slots=True)
class QuestionSet:
    """The content of a question file."""

    paragraphs: tuple[Paragraph, ...]  # SQuAD's contexts; empty for a file of questions alone
    questions: tuple[SquadQuestion, ...]


def read(path: Path | str) -> QuestionSet:
    """Read either kind of file, told apart by its name: ``.jsonl`` holds a question a line, else it is SQuAD's.

    Raises BadData, which says where, and OSError as open() does.
    """
    path = Path(path)
    if path.name.removesuffix(".gz").endswith(".jsonl"):
        return QuestionSet((), read_lines(path))
    return read_squad(path)


def read_squad(path: Path | str) -> QuestionSet:
    """Read SQuAD's JSON; raises BadData with the place in the document, and OSError as open() does."""
    path = Path(path)
    try:
        root = json.loads(read_text(path))
    except json.JSONDecodeError as error:
        raise _bad(path, f"line {error.lineno}", f"not JSON: {error.msg}") from None
    return of_squad(path, root)


def of_squad(path: Path | str, root: object) -> QuestionSet:
    """Reads JSON that was loaded already from what `path` names; raises BadData."""
    path = Path(path)
    paragraphs: list[Paragraph] = []
    questions: list[SquadQuestion] = []
    for a, article in enumerate(_field(path, "", root, "data", list)):
        where = f"data[{a}]"
        title = _field(path, where, article, "title", str)
        for p, paragraph in enumerate(_field(path, where, article, "paragraphs", list)):
            inner = f"{where}.paragraphs[{p}]"
            text = _field(path, inner, paragraph, "context", str)
            paragraphs.append(Paragraph(f"{title}/{p}", title, text))
            questions += _squad_questions(path, inner, paragraph, paragraphs[-1].id)
    return QuestionSet(tuple(paragraphs), tuple(questions))


def is_held_out(paragraph: str, share: float) -> bool:
    """Whether a paragraph's article is set apart, for a share of 0 to 1: by its title, so that all files agree."""
    title = paragraph.rsplit("/", 1)[0]
    return int.from_bytes(hashlib.sha256(title.encode()).digest()[:4], "big") < share * 2**32


def _squad_questions(path: Path, where: str, paragraph: object, document: str) -> list[SquadQuestion]:
    questions = []
    for q, entry in enumerate(_field(path, where, paragraph, "qas", list)):
        inner = f"{where}.qas[{q}]"
        starts: dict[str, int] = {}
        for n, answer in enumerate(_field(path, inner, entry, "answers", list)):
            start = answer.get("answer_start") if isinstance(answer, dict) else None
            text = _field(path, f"{inner}.answers[{n}]", answer, "text", str)
            starts.setdefault(text, start if isinstance(start, int) else -1)
        questions.append(
            SquadQuestion(
                _field(path, inner, entry, "id", str),
                _field(path, inner, entry, "question", str),
                tuple(starts),
                document,
                tuple(starts.values()),
            )
        )
    return questions


def read_lines(path: Path | str) -> tuple[SquadQuestion, ...]:
    """Read one question a line, blank lines skipped; raises BadData with the line, OSError as open() does."""
    path = Path(path)
    return tuple(
        _line_question(path, f"line {number}", line)
        for number, line in enumerate(read_text(path).split("\n"), 1)
        if line.strip()
    )


def _line_question(path: Path, where: str, line: str) -> SquadQuestion:
    try:
        entry = json.loads(line)
    except json.JSONDecodeError as error:
        raise _bad(path, where, f"not JSON: {error.msg} (column {error.colno})") from None
    answers = _field(path, where, entry, "answers", list)
    for answer in answers:
        if not isinstance(answer, str):
            raise _bad(path, where, f"an answer is {answer!r}, a string is needed")
    document = entry.get("document")
    if document is not None and not isinstance(document, str):
        raise _bad(path, where, f'"document" is {document!r}, a string or null is needed')
    return SquadQuestion(
        _field(path, where, entry, "id", str),
        _field(path, where, entry, "question", str),
        tuple(dict.fromkeys(answers)),
        document,
    )


def _field(path: Path, where: str, record: object, name: str, kind: type[_T]) -> _T:
    """The field of a JSON object, checked to be of its kind."""
    if not isinstance(record, dict):
        raise _bad(path, where, f"{type(record).__name__} found, an object is needed")
    value: Any = record.get(name)
    if not isinstance(value, kind):
        fault = f"is {type(value).__name__}" if name in record else "is missing"
        raise _bad(path, where, f'"{name}" {fault}, {kind.__name__} is needed')
    return value


def read_text(path: Path) -> str:
    """The text of a file, gzipped or not; raises BadData when it is not UTF-8 or not whole, OSError as open() does."""
    content = path.read_bytes()
    try:
        if path.suffix == ".gz":
            content = gzip.decompress(content)
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise _bad(path, f"byte {error.start}", "not UTF-8; save it as UTF-8") from None
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise _bad(path, "", f"not a whole gzip file: {error}") from None


def _bad(path: Path, where: str, what: str) -> BadData:
    place = f"{path}, {where}" if where else f"{path}"
    return BadData(f"{place}: {what}")
