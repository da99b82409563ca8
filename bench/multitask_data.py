"""Five tasks labelled from SQuAD as it is, for `bench/multitask.py`.

    python bench/multitask_data.py --tokenizer ../shared/models/reader-v0 --out /tmp/tasks

Nothing is labelled by hand or by a model. Spans and answerability are SQuAD's own; a passage's topic is its article;
its words' capitals are in the raw text, which the network reads in lower case; dates, sums of money, shares and other
numbers follow from rules. Every training row has all five labels, so that the joint model and the single ones learn
from the same rows. SQuAD's dev sets are measured on, never learnt from.
"""

import hashlib
import json
import random
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
from common import SHARED

from shardqa.models.tokenizer import Tokenizer
from shardqa_toolchain import squad
from shardqa_toolchain.faults import Faulty
from shardqa_toolchain.multitask.tasks import BIO
from shardqa_toolchain.multitask.words import Mark, Words, label_words

ARTICLES = 40
DEV_SHARE = 0.2  # of these articles' paragraphs, measured on
DEV_QUESTIONS = 4  # of such a paragraph
SQUAD_DEV_QUESTIONS = 3000  # of each of SQuAD's dev sets

_YEAR = r"1[0-9]{3}s?|20[0-2][0-9]s?"
_MONTH = "(?:January|February|March|April|May|June|July|August|September|October|November|December)"
_NUMBER = r"[0-9](?:[0-9,.]*[0-9])?"
# What begins with none but a sign of money and ends a word.
QUANTITY = re.compile(
    rf"(?<!\w)(?:(?P<MONEY>[$£€]\s?{_NUMBER}(?:\s(?:million|billion|trillion))?)"
    rf"|(?P<PERCENT>{_NUMBER}\s?(?:%|percent(?!\w)|per\scent(?!\w)))"
    rf"|(?P<DATE>(?:[0-9]{{1,2}}\s)?{_MONTH}\s(?:[0-9]{{1,2}},\s)?(?:{_YEAR})|[0-9]{{1,2}}\s{_MONTH}"
    rf"|{_MONTH}\s[0-9]{{1,2}}|(?:{_YEAR}))"
    rf"|(?P<NUMBER>{_NUMBER}))(?!\w)"
)


@dataclass(frozen=True, slots=True)
class Row:
    """A question with its paragraph; the labels follow from both."""

    topic: str
    text: str
    question: squad.SquadQuestion


def write(shared: Path, tokenizer: Tokenizer, rows: int, out: Path, seed: int) -> None:
    """Write ``<task>-train.jsonl`` and ``<task>-dev.jsonl`` of all tasks; ``rows`` bounds what is learnt from."""
    out.mkdir(parents=True, exist_ok=True)
    learnt, held_out = _split(shared, rows, seed)
    for task, entries in _labelled(learnt, tokenizer).items():
        _write_lines(out / f"{task}-train.jsonl", entries)
    dev = _labelled(held_out, tokenizer)
    for task, name in (("qa", "dev-v1.1"), ("said", "dev-v2.0")):
        rows_of_set = _rows(squad.read(shared / f"data/squad/{name}.json.gz"))
        drawn = random.Random(seed).sample(
            rows_of_set, min(len(rows_of_set), max(16, SQUAD_DEV_QUESTIONS * rows // 10_000))
        )
        dev[task] = [_span(row) if task == "qa" else _answerable(row) for row in drawn]
    for task, entries in dev.items():
        _write_lines(out / f"{task}-dev.jsonl", entries)


def _split(shared: Path, rows: int, seed: int) -> tuple[list[Row], list[Row]]:
    """Parts rows to learn from and rows to measure on, of the articles with most paragraphs that have unanswerable
    questions, too."""
    files = ("train-v1.1", "train-v2.0-unanswerable")
    sets = [squad.read(shared / f"data/squad/{name}.json.gz") for name in files]
    both = {paragraph.title for paragraph in sets[1].paragraphs}
    counts = Counter(paragraph.title for paragraph in sets[0].paragraphs if paragraph.title in both)
    titles = {title for title, _ in sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:ARTICLES]}
    drawn = [row for one in sets for row in _rows(one) if row.topic in titles]
    random.Random(seed).shuffle(drawn)
    learnt = [row for row in drawn if not _is_dev(row.text)][:rows]
    known = {row.topic for row in learnt}
    measured: Counter[str] = Counter()
    held_out = []
    for row in drawn:
        if row.topic in known and _is_dev(row.text) and measured[row.text] < DEV_QUESTIONS:
            measured[row.text] += 1
            held_out.append(row)
    return learnt, held_out[: max(16, rows)]


def _is_dev(text: str) -> bool:
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big") < DEV_SHARE * 2**32


def _rows(question_set: squad.QuestionSet) -> list[Row]:
    paragraphs = {paragraph.id: paragraph for paragraph in question_set.paragraphs}
    return [
        Row(paragraphs[question.document].title, paragraphs[question.document].text, question)
        for question in question_set.questions
        if question.document is not None
    ]


def _labelled(rows: Sequence[Row], tokenizer: Tokenizer) -> dict[str, list[dict[str, Any]]]:
    words = {text: Words.of(tokenizer.passage(text)) for text in {row.text for row in rows}}
    capitals = {text: list(_capitals(text, found)) for text, found in words.items()}
    quantities = {text: list(_quantities(text, found)) for text, found in words.items()}
    both = [{"text": row.text, "question": row.question.text} for row in rows]
    return {
        "qa": [_span(row) for row in rows],
        "said": [_answerable(row) for row in rows],
        "topic": [{**pair, "label": row.topic} for pair, row in zip(both, rows, strict=True)],
        "capitals": [{**pair, "spans": capitals[pair["text"]]} for pair in both],
        "quantities": [{**pair, "spans": quantities[pair["text"]]} for pair in both],
    }


def _span(row: Row) -> dict[str, Any]:
    answers, starts = row.question.answers, row.question.starts
    place = [starts[0], starts[0] + len(answers[0])] if answers else None
    return {"text": row.text, "question": row.question.text, "answer": place, "answers": list(answers)}


def _answerable(row: Row) -> dict[str, Any]:
    return {"text": row.text, "question": row.question.text, "label": bool(row.question.answers)}


def _capitals(text: str, words: Words) -> Iterator[list[Any]]:
    """Words that are not in small letters: Capital, UPPER or miXed."""
    for start, end in zip(words.start.tolist(), words.end.tolist(), strict=True):
        word = text[start:end]
        if word != word.lower():
            upper = word == word.upper() and len(word) > 1
            capital = word[0] != word[0].lower() and word[1:] == word[1:].lower()
            yield [start, end, "upper" if upper else "capital" if capital else "mixed"]


def _quantities(text: str, words: Words) -> Iterator[list[Any]]:
    """Dates, sums of money, shares and other numbers, where they are made of whole words."""
    for match in QUANTITY.finditer(text):
        mark = Mark(*match.span(), f"B-{match.lastgroup}")
        try:
            label_words(words, [mark], BIO)
        except Faulty:
            continue
        yield [mark.start, mark.end, match.lastgroup]


def _write_lines(path: Path, entries: Sequence[Mapping[str, Any]]) -> None:
    path.write_text("".join(json.dumps(entry, ensure_ascii=False) + "\n" for entry in entries), encoding="utf-8")


def main(
    tokenizer: Annotated[Path, typer.Option(help="Folder whose tokenizer says what a word is.")],
    out: Annotated[Path, typer.Option(help="Folder to write the files to.")],
    shared: Annotated[Path, typer.Option(help="Folder with data/squad.")] = SHARED,
    rows: Annotated[int, typer.Option(help="Rows to learn from.", min=1)] = 10_000,
    seed: int = 1,
) -> None:
    """Write <task>-train.jsonl and <task>-dev.jsonl of five tasks."""
    write(shared, Tokenizer.load(tokenizer), rows, out, seed)


if __name__ == "__main__":
    typer.run(main)
