"""One training file out of many: shares drawn, documents held out, questions restyled, hard negatives from a search.

    shardqa-models mix mixture.toml --out build/mixture

writes ``train.json.gz``, ``train.jsonl.gz`` where there are questions with evidence, ``held-out/<file>`` for each
source that holds something out, and ``mixture.json``, which says how it was made and what it holds. Everything is drawn
from the seed: the same settings and files give the same bytes.
"""

import gzip
import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from random import Random
from typing import Any, Self

from shardqa.errors import BadData, QuestionTooLong
from shardqa.models.shipped import sha256
from shardqa.models.tokenizer import Tokenizer
from shardqa_toolchain import evidence_lines, squad
from shardqa_toolchain.evidence_lines import EvidenceRecord
from shardqa_toolchain.folders import written_atomically
from shardqa_toolchain.training import evidence_mixture
from shardqa_toolchain.training.evidence_mixture import LOOKED_AT
from shardqa_toolchain.training.retrieved import PassageRows
from shardqa_toolchain.training.settings import checked, read_toml, section
from shardqa_toolchain.training.styles import Styles

TRAIN_FILE, EVIDENCE_FILE, HELD_OUT, MANIFEST = "train.json.gz", "train.jsonl.gz", "held-out", "mixture.json"

ALIKE = 80  # characters from a paragraph's first on by which the same text is known in two files


@dataclass(frozen=True, slots=True)
class MixtureSource:
    """A file and what is taken of it: SQuAD's, evidence lines, or pages with questions (`evidence_mixture.py`)."""

    file: str = ""
    # Share of its documents that is never learnt from, by a hash of their titles; evidence lines say it themselves.
    held_out: float = 0.0
    measured: bool = False  # learn nothing from it: what is taken is all held out
    # Each paragraph is a document: for files whose paragraphs share one title, or none that means anything.
    by_context: bool = False
    share: float = 1.0  # of its questions, drawn
    copies: int = 1  # of each question taken, each in a style of its own
    # Questions asked of a passage that does not answer them, as a share of the answerable ones taken.
    negatives: float = 0.0
    answerable: bool = True  # take the questions that have an answer

    def checked(self) -> Self:
        """Returns itself; raises BadData with the first setting out of its range."""
        rules = (
            ("file", bool(self.file), "a SQuAD file, or one of questions with evidence"),
            ("held_out", 0 <= self.held_out < 1, "0 or more, below 1"),
            ("share", 0 < self.share <= 1, "above 0, at most 1"),
            ("copies", self.copies >= 1, "1 or more"),
            ("negatives", 0 <= self.negatives <= 1, "0 to 1"),
        )
        return checked(self, rules, f"{self.file or 'a source'}: ")


@dataclass(frozen=True, slots=True)
class Mixture:
    tokenizer: str = ""  # folder of a reader, whose wordpieces the search counts in
    seed: int = 1
    # SQuAD files for measuring: a paragraph that stands in one of them is never learnt from.
    apart: tuple[str, ...] = ()
    styles: Styles = field(default_factory=Styles)
    sources: tuple[MixtureSource, ...] = ()

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read a mixture's TOML; raises BadData with the setting that is unknown, of the wrong kind or out of range."""
        tables = read_toml(path)
        styles = section(path, "styles", Styles, tables.pop("styles", {})).checked()
        sources = tuple(section(path, "sources", MixtureSource, one).checked() for one in tables.pop("sources", []))
        if not sources:
            raise BadData(f"{path} has no [[sources]]; name one file or more")
        return section(path, "", cls, {**tables, "styles": styles, "sources": sources})


@dataclass(frozen=True, slots=True)
class AskedQuestion:
    """A question with the paragraph that it is asked of."""

    question: squad.SquadQuestion
    title: str
    context: str

    def as_json(self, id: str, text: str) -> dict[str, Any]:
        """The entry of SQuAD's JSON."""
        pairs = zip(self.question.answers, self.question.starts, strict=True)
        answers = [{"text": answer, "answer_start": start} for answer, start in pairs]
        return {"id": id, "question": text, "answers": answers, "is_impossible": not answers}


@dataclass(slots=True)
class Book:
    """A SQuAD file as it grows."""

    articles: dict[str, dict[str, list[dict[str, Any]]]] = field(default_factory=dict)  # questions by title and context
    questions: int = 0

    def add(self, title: str, context: str, question: dict[str, Any]) -> None:
        self.articles.setdefault(title, {}).setdefault(context, []).append(question)
        self.questions += 1

    def write(self, path: Path) -> None:
        data = [
            {"title": title, "paragraphs": [{"context": text, "qas": entries} for text, entries in paragraphs.items()]}
            for title, paragraphs in self.articles.items()
        ]
        text = json.dumps({"version": "mixture", "data": data}, ensure_ascii=False)
        path.write_bytes(gzip.compress(text.encode(), mtime=0))


def mix(mixture: Mixture, out: Path) -> dict[str, Any]:
    """Write a mixture to the new folder ``out``, and return what ``mixture.json`` says.

    Raises BadData for files that can't be used, OSError as open() does, SetupError for a full disk.
    """
    apart = {_start(one.text) for name in mixture.apart for one in squad.read_squad(name).paragraphs}
    random = Random(mixture.seed)
    train, counts = Book(), {}
    samples: list[tuple[MixtureSource, list[AskedQuestion]]] = []
    sources = [one for one in mixture.sources if not evidence_mixture.is_evidence(Path(one.file))]
    with written_atomically(out) as folder:
        for source in sources:
            learnt, held_out = _parted(source, apart)
            sample = [one for one in learnt if source.answerable or not one.question.answers]
            sample = random.sample(sample, max(1, round(source.share * len(sample)))) if sample else []
            samples.append((source, sample))
            _write_held_out(folder, source, held_out)
            counts[Path(source.file).name] = {"learnt": len(sample), "held_out": len(held_out)}
        for source, sample in samples:
            for one in sample:
                for copy in range(source.copies):
                    text = mixture.styles.apply(one.question.text, random)
                    train.add(one.title, one.context, one.as_json(f"{one.question.id}#{copy}", text))
        negatives = _add_negatives(mixture, samples, train, random)
        train.write(folder / TRAIN_FILE)
        records: list[EvidenceRecord] = []
        for source in mixture.sources:
            if source not in sources:
                part, counts[Path(source.file).name] = _evidence(mixture, source, apart, folder, random)
                records += part
        if records:
            evidence_lines.write(folder / EVIDENCE_FILE, records)
        files = {Path(one.file).name: sha256(Path(one.file)) for one in mixture.sources}
        negatives += sum(one.id.endswith("#no") for one in records)
        manifest = {"settings": asdict(mixture), "files": files, "taken": counts, "negatives": negatives}
        manifest |= {"questions": train.questions + len(records)}
        (folder / MANIFEST).write_text(json.dumps(manifest, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    return manifest


def _evidence(
    mixture: Mixture, source: MixtureSource, apart: set[str], folder: Path, random: Random
) -> tuple[list[EvidenceRecord], dict[str, int]]:
    """Returns what is learnt of a file of questions with evidence, and the counts; writes what is held out."""
    path = Path(source.file)
    records = [one for one in evidence_mixture.read(path, source.held_out) if _start(one.context) not in apart]
    held_out = [one for one in records if source.measured or one.split == evidence_lines.DEV]
    learnt = [] if source.measured else [one for one in records if one.split != evidence_lines.DEV]
    if source.measured:
        held_out = random.sample(held_out, round(source.share * len(held_out)))
    sample = random.sample(learnt, round(source.share * len(learnt)))
    if held_out:
        (folder / HELD_OUT).mkdir(exist_ok=True)
        name = f"{path.name.split('.')[0]}.jsonl.gz"
        evidence_lines.write(folder / HELD_OUT / name, [evidence_mixture.cut(one, random) for one in held_out])
    copies = [
        replace(evidence_mixture.cut(one, random), id=f"{one.id}#{copy}")
        for one in sample
        for copy in range(source.copies)
    ]
    if source.negatives:
        tokenizer = Tokenizer.load(mixture.tokenizer)
        copies += evidence_mixture.negatives(copies, source.negatives, tokenizer, random)
    rows = [replace(one, question=mixture.styles.apply(one.question, random)) for one in copies]
    return rows, {"learnt": len(sample), "held_out": len(held_out)}


def _parted(source: MixtureSource, apart: set[str]) -> tuple[list[AskedQuestion], list[AskedQuestion]]:
    """A file's questions: those to learn from and those held out."""
    content = squad.read_squad(source.file)
    paragraphs = {one.id: one for one in content.paragraphs}
    learnt: list[AskedQuestion] = []
    held_out: list[AskedQuestion] = []
    for question in content.questions:
        assert question.document is not None, "SQuAD's questions have a paragraph"
        paragraph = paragraphs[question.document]
        title = f"{paragraph.title} {_hash(paragraph.text)}" if source.by_context else paragraph.title
        pair = AskedQuestion(question, title, paragraph.text)
        if squad.is_held_out(f"{title}/0", source.held_out):
            held_out.append(pair)
        elif _start(paragraph.text) not in apart:
            learnt.append(pair)
    return learnt, held_out


def _write_held_out(folder: Path, source: MixtureSource, held_out: Sequence[AskedQuestion]) -> None:
    if not held_out:
        return
    book = Book()
    for one in held_out:
        book.add(one.title, one.context, one.as_json(one.question.id, one.question.text))
    (folder / HELD_OUT).mkdir(exist_ok=True)
    book.write(folder / HELD_OUT / f"{Path(source.file).name.removesuffix('.gz')}.gz")


def _add_negatives(
    mixture: Mixture, drawn: Sequence[tuple[MixtureSource, list[AskedQuestion]]], train: Book, random: Random
) -> int:
    """Add questions to passages of all sources that are like them and lack the answer; returns how many."""
    if not any(source.negatives for source, _ in drawn):
        return 0
    tokenizer = Tokenizer.load(mixture.tokenizer)
    shelf = list(dict.fromkeys((one.title, one.context) for _, sample in drawn for one in sample))
    pieces = [tokenizer.passage(context).ids for _, context in shelf]
    passages = PassageRows(pieces)
    before = train.questions
    for source, sample in drawn:
        answerable = [one for one in sample if one.question.answers]
        for one in random.sample(answerable, round(source.negatives * len(answerable))):
            for title, context in _unanswering(one, shelf, passages, tokenizer):
                text = mixture.styles.apply(one.question.text, random)
                entry = {"id": f"{one.question.id}#no", "question": text, "answers": [], "is_impossible": True}
                train.add(title, context, entry)
    return train.questions - before


def _unanswering(
    pair: AskedQuestion, shelf: Sequence[tuple[str, str]], passages: PassageRows, tokenizer: Tokenizer
) -> Iterator[tuple[str, str]]:
    """The likest passage without any of the question's answers, if there is one."""
    try:
        question = tokenizer.question(pair.question.text)
    except QuestionTooLong:
        return
    answers = [answer.lower() for answer in pair.question.answers]
    for number in passages.likest(question, LOOKED_AT):
        text = shelf[number][1].lower()
        if shelf[number][1] != pair.context and not any(answer in text for answer in answers):
            yield shelf[number]
            return


def _start(text: str) -> str:
    return " ".join(text.split())[:ALIKE].lower()


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]
