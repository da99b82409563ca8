"""Candidates for fitting and testing the score: what a reader sees of a question, as the shards would hand it over.

One process, no Redis: the index, the splitter and the reader are those of the shards. A line is a question:
``{"id", "domain", "kind", "question", "answers", "absent", "ranks", "candidates": [{"text", "span_logit", "null_logit",
"rank_score", "evidence", "relevance", "said"}, ...], "passages": [...]}``, as `shardqa_toolchain.calibrate` reads it.
"""

import json
import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from numpy.typing import NDArray
from rich.progress import track

from shardqa import keys
from shardqa.analysis import query
from shardqa.cli.output import err
from shardqa.errors import BadData
from shardqa.gears_functions.index.corpus_index import Index
from shardqa.gears_functions.splitting import Passage, split
from shardqa.models import embedding, evidence, sentences
from shardqa.models.embedding import PassageRow, StoredVectors
from shardqa.models.reader import Row, RowLogits, best_spans, join, null_logit
from shardqa.models.session import ReaderSession, open_session
from shardqa.models.tokenizer import Tokenizer
from shardqa.statistics import QuestionVector
from shardqa_toolchain import squad

ENCODER = "0" * 16  # its id: there is one here

SPANS = 2  # per passage: the second teaches the score what wrong ones look like

CORPUS = "candidates"


@dataclass(frozen=True, slots=True)
class Sample:
    """Questions, and the documents that they are asked of."""

    documents: list[tuple[str, str, str]]  # id, title, text
    questions: list[squad.SquadQuestion]
    name: str = "squad"  # of the domain
    absent: bool = False  # ask each answerable question once more, without the document it is about


class Encoder:
    """A sentence encoder in this process, as shards run theirs."""

    def __init__(self, folder: Path, threads: int) -> None:
        """Load an encoder's folder; raises BadModel."""
        self._tokenizer = Tokenizer.load(folder)
        self._session = open_session(folder, threads)

    def passage(self, title: str, text: str) -> StoredVectors:
        passage = PassageRow.of(self._tokenizer, title, text)
        return StoredVectors.of(ENCODER, title, text, passage.vectors(self._run(passage.row)))

    def question(self, question: str) -> QuestionVector:
        outputs = self._run(embedding.row(self._tokenizer.question(question)))
        return QuestionVector(ENCODER, outputs[embedding.OUTPUT].tobytes())

    def _run(self, row: Row) -> dict[str, NDArray[Any]]:
        """Returns the network's outputs by name."""
        names = list(embedding.OUTPUTS)
        return dict(zip(names, self._session.run(names, row.feeds()), strict=True))


@dataclass(slots=True)
class Library:
    """Documents, split and indexed."""

    tokenizer: Tokenizer
    encoder: Encoder | None = None
    index: Index = field(default_factory=Index)
    passages: dict[str, Passage] = field(default_factory=dict)
    titles: dict[str, str] = field(default_factory=dict)  # of passages, by key

    def add(self, document: str, title: str, text: str) -> None:
        for number, passage in enumerate(split(text, self.tokenizer)):
            key = keys.passage(CORPUS, document, number)
            self.passages[key], self.titles[key] = passage, title
            self.index.put(key, title, passage.text, passage.end)
            if self.encoder is not None:
                self.index.put_vectors(key, self.encoder.passage(title, passage.text))

    def rank(self, question: str, k: int, without: str | None = None) -> list[tuple[str, float]]:
        """Returns the best ``k`` passages with their scores, without those of the document ``without``."""
        terms = query(question)
        hidden = set(self.index.table.keys_of(without)) if without is not None else set()
        near = self.encoder.question(question) if self.encoder is not None else None
        ranks = self.index.rank(terms, self.index.statistics(terms).compared(near), k + len(hidden))
        return [(key, score) for key, score in ranks if key not in hidden][:k]

    def ask(self, session: ReaderSession, question: str, k: int, without: str | None = None) -> dict[str, Any]:
        question = keys.normalise_question(question)
        ranks = self.rank(question, k, without)
        ids = self.tokenizer.question(question)
        passages = [self.passages[key] for key, _ in ranks]
        rows = [join(ids, passage.ids) for passage in passages]
        read = [
            self._read(key, score, row, logits)
            for (key, score), row, logits in zip(ranks, rows, session.read_all(rows), strict=True)
        ]
        terms = query(question)
        statistics = self.index.statistics(terms)
        return {
            "ranks": [round(score, 4) for _, score in ranks],
            "corpus": statistics.passages,
            "absent": [term for term in terms.terms if not statistics.df.get(term)],
            "candidates": [one for spans, _ in read for one in spans],
            "passages": [passage for _, passage in read],
        }

    def _read(self, key: str, rank: float, row: Row, logits: RowLogits) -> tuple[list[dict[str, Any]], dict[str, Any]]:
        """Returns (candidates, the passage with its sentences' logits) as the shards' replies have them."""
        passage = self.passages[key]
        offsets = self.tokenizer.passage(passage.text).offsets
        numbers = sentences.numbers(passage.text, offsets)
        scores = {
            "null_logit": round(null_logit(logits.start, logits.end), 4),
            "rank_score": round(rank, 4),
            "relevance": round(logits.relevance or 0.0, 4),
        }
        of_passage = logits.within(row.passage)
        best = best_spans(logits.start, logits.end, row.passage, SPANS, sentences=numbers)
        candidates = [
            {
                "text": passage.text[offsets[span.start_token, 0] : offsets[span.end_token, 1]],
                "span_logit": round(span.logit, 4),
                "evidence": round(own.evidence, 4),
                "said": f"{passage.text[own.start : own.end]}\n{self.titles[key]}",
                "start": passage.start + int(offsets[span.start_token, 0]),
                "passage": key,
                **scores,
            }
            for span in best
            for own in [evidence.own(offsets, numbers, span, of_passage.evidence)]
        ]
        likeliest = evidence.likeliest(of_passage, offsets, numbers, best)
        places = [(one.start, one.end, round(one.logit, 4), round(one.evidence, 4)) for one in likeliest]
        of_passage_itself = {"key": key, "above": self.titles[key], "text": passage.text, "start": passage.start}
        return candidates, {**of_passage_itself, "sentences": places, **scores}


def articles(files: Sequence[Path], paragraphs: int, limit: int, held_out: float | None, seed: int) -> Sample:
    """Returns whole articles up to so many paragraphs, and ``limit`` of their questions of each kind, drawn at random.

    The first file's paragraphs are the documents. The kinds: answerable, unanswerable, and of an article that is not
    there. With ``held_out`` only that share of the articles, which training leaves alone, is asked about; the others'
    paragraphs only stand in the way. Raises BadData when no article is held out.
    """
    sets = [squad.read_squad(path) for path in files]
    titles = sorted({paragraph.title for paragraph in sets[0].paragraphs})
    random.Random(seed).shuffle(titles)
    subjects = {title for title in titles if held_out is None or squad.is_held_out(f"{title}/0", held_out)}
    if not subjects:
        raise BadData(f"of {len(titles)} articles none is among the {held_out:.1%} held out; give more data")
    shelf, documents = _shelved(sets[0], sorted(titles, key=lambda title: title not in subjects), paragraphs)
    questions = [question for part in sets for question in part.questions]
    inside = [question for question in questions if _title(question) in shelf & subjects]
    outside = [question for question in sets[0].questions if _title(question) not in shelf]
    strangers = random.Random(seed).sample(outside, min(limit, len(outside)))
    unknown = [squad.SquadQuestion(one.id, one.text, (), None) for one in strangers]
    return Sample(documents, list(_drawn(inside + unknown, limit, seed)))


def _title(question: squad.SquadQuestion) -> str:
    return (question.document or "").rpartition("/")[0]


def _shelved(
    squad_set: squad.QuestionSet, titles: Sequence[str], count: int
) -> tuple[set[str], list[tuple[str, str, str]]]:
    shelf: set[str] = set()
    documents: list[tuple[str, str, str]] = []
    for title in titles:
        if len(documents) >= count:
            break
        shelf.add(title)
        documents += [(one.id, title.replace("_", " "), one.text) for one in squad_set.paragraphs if one.title == title]
    return shelf, documents


def _drawn(questions: Sequence[squad.SquadQuestion], limit: int, seed: int) -> Iterator[squad.SquadQuestion]:
    kinds = [(bool(question.answers), question.document is None) for question in questions]
    for kind in sorted(set(kinds)):
        of_kind = [question for question, other in zip(questions, kinds, strict=True) if other == kind]
        yield from random.Random(seed).sample(of_kind, min(limit, len(of_kind)))


def write(samples: Iterable[Sample], reader: Path, out: Path, k: int, threads: int, vectors: Path | None = None) -> int:
    """Ask every question, write a line for each, and return the number of passages; raises BadModel."""
    session = ReaderSession(reader, threads)
    encoder = Encoder(vectors, threads) if vectors is not None else None
    passages = 0
    with out.open("w", encoding="utf-8") as file:
        for sample in samples:
            library = Library(Tokenizer.load(reader), encoder)
            for document in sample.documents:
                library.add(*document)
            passages += len(library.passages)
            for question in track(sample.questions, f"Reading {sample.name}", console=err, disable=not err.is_terminal):
                for record in _records(library, session, sample, question, k):
                    file.write(json.dumps(record, ensure_ascii=False) + "\n")
    return passages


def _records(
    library: Library, session: ReaderSession, sample: Sample, question: squad.SquadQuestion, k: int
) -> Iterator[dict[str, Any]]:
    kind = "answerable" if question.answers else "absent" if question.document is None else "trick"
    head = {"id": question.id, "domain": sample.name, "kind": kind, "question": question.text}
    yield {**head, "answers": question.answers, **library.ask(session, question.text, k)}
    if sample.absent and question.answers:
        yield {**head, "kind": "absent", "answers": [], **library.ask(session, question.text, k, question.document)}
