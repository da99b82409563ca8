"""From question sets to labelled wordpieces: which pieces of a passage are the answer, and which sentences support it.

An example is one question with one passage and where its answer lies in it, or that it does not. The pieces are cut by
the tokenizer that serves, so the network learns from exactly what it will read.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import NDArray

from shardqa.errors import BadData
from shardqa.models import sentences
from shardqa.models.tokenizer import Tokenizer
from shardqa_toolchain import evidence_lines, squad
from shardqa_toolchain.faults import Fault, Faulty, Pieces, answer_pieces, attempted, parted
from shardqa_toolchain.training.batches import UNSAID


@dataclass(frozen=True, slots=True)
class Example:
    """A question, a passage, and the answer's place."""

    question: NDArray[np.int32]  # wordpieces of the question, int32 [n], its question mark included
    passage: NDArray[np.int32]  # wordpieces of the passage, int32 [m]; examples of one passage share the array
    # First and last wordpiece of the answer within the passage; None when the passage does not say.
    answer: tuple[int, int] | None
    # 1 for wordpieces of sentences that answer, 0 for others, UNSAID where nobody knows, int8 [m].
    evidence: NDArray[np.int8]
    has_span: bool = True  # whether ``answer`` says anything: some questions are answered by sentences alone


@dataclass(frozen=True, slots=True)
class TextUnits:
    """A text's sentences and words, by wordpiece."""

    sentences: NDArray[np.int64]  # the number of the sentence or line that a wordpiece begins in, [m]
    words: NDArray[np.bool_]  # whether a wordpiece begins a word, [m]

    @classmethod
    def of(cls, text: str, offsets: NDArray[np.int32]) -> Self:
        breaks = {*sentences.beginnings(text), *(match.end() for match in LINE_END.finditer(text))}
        numbers = np.searchsorted(np.array(sorted(breaks), dtype=np.int64), offsets[:, 0], side="right")
        begins = [text[at].isalnum() and not (at and text[at - 1].isalnum()) for at in offsets[:, 0].tolist()]
        return cls(numbers, np.array(begins, dtype=np.bool_))


LINE_END = re.compile(r"\n")  # rows of tables and items of lists are evidence by themselves


@dataclass(frozen=True, slots=True)
class ExampleSource:
    """A question as the file has it, beside its example: what choosing negatives and reporting need."""

    question: squad.SquadQuestion
    example: Example
    units: TextUnits  # of the passage; those of one passage are shared
    file: str  # the name of the file that it comes from


def read(
    paths: Sequence[Path], tokenizer: Tokenizer, skip_faulty: bool = False
) -> tuple[list[ExampleSource], list[Fault]]:
    """Label every question of SQuAD files and of files of evidence lines, which end in .jsonl or .jsonl.gz.

    A question whose answer does not stand where the file says, or that is too long to be read, is a fault: with
    ``skip_faulty`` it is left out and reported, else BadData names the first ones. Raises BadData also when nothing is
    left, and OSError as open() does.
    """
    sources: list[ExampleSource] = []
    faults: list[Fault] = []
    for path in paths:
        examples = list(_label_file(path, tokenizer))
        good, bad = parted(examples, skip_faulty, f"{path}: {{}} of its questions can't be learnt from")
        sources += good
        faults += bad
    if not sources:
        raise BadData(f"{', '.join(map(str, paths)) or 'no file'}: no question to learn from; give a SQuAD file")
    return sources, faults


@dataclass(frozen=True, slots=True)
class _Text:
    """A passage as it is labelled."""

    text: str
    ids: NDArray[np.int32]
    offsets: NDArray[np.int32]
    units: TextUnits
    file: str

    @classmethod
    def of(cls, text: str, tokenizer: Tokenizer, file: str) -> Self:
        tokens = tokenizer.passage(text)
        return cls(text, tokens.ids, tokens.offsets, TextUnits.of(text, tokens.offsets), file)

    def evidence(self, spans: Iterable[tuple[int, int]], unsaid: Iterable[tuple[int, int]] = ()) -> NDArray[np.int8]:
        """Labels of the wordpieces that share a character with these spans."""
        labels = np.zeros(len(self.ids), dtype=np.int8)
        for label, places in ((UNSAID, unsaid), (1, spans)):
            for start, end in places:
                labels[(self.offsets[:, 0] < end) & (self.offsets[:, 1] > start)] = label
        return labels

    def around(self, pieces: Pieces) -> NDArray[np.int8]:
        """Labels of the sentences that hold these wordpieces, from the first to the last."""
        numbers = self.units.sentences
        inside: NDArray[np.int8] = ((numbers >= numbers[pieces[0]]) & (numbers <= numbers[pieces[1]])).astype(np.int8)
        return inside


def _label_file(path: Path, tokenizer: Tokenizer) -> Iterator[ExampleSource | Fault]:
    if evidence_lines.is_lines(path):
        for record in evidence_lines.read(path):
            text = _Text.of(record.context, tokenizer, path.name)
            yield attempted(record.id, _label_record, record, text, tokenizer)
        return
    questions = squad.read_squad(path)
    texts = {paragraph.id: paragraph.text for paragraph in questions.paragraphs}
    passages: dict[str, _Text] = {}
    for question in questions.questions:
        assert question.document is not None, "SQuAD's questions have a paragraph"
        if question.document not in passages:
            passages[question.document] = _Text.of(texts[question.document], tokenizer, path.name)
        yield attempted(question.id, _label, question, passages[question.document], tokenizer)


def _label(question: squad.SquadQuestion, passage: _Text, tokenizer: Tokenizer) -> ExampleSource:
    ids = _question_ids(question.text, tokenizer)
    span, evidence = None, passage.evidence([])
    if question.answers:
        span = answer_pieces(passage.text, passage.offsets, question.starts[0], question.answers[0])
        evidence = passage.around(span)
    return ExampleSource(question, Example(ids, passage.ids, span, evidence), passage.units, passage.file)


def _label_record(record: evidence_lines.EvidenceRecord, passage: _Text, tokenizer: Tokenizer) -> ExampleSource:
    ids = _question_ids(record.question, tokenizer)
    labels = passage.evidence(record.spans, record.soft)
    if record.spans and not (labels == 1).any():
        raise Faulty("its evidence has no wordpiece")
    example = Example(ids, passage.ids, None, labels, has_span=not record.spans)
    question = squad.SquadQuestion(record.id, record.question, (), f"{record.title}/0")
    return ExampleSource(question, example, passage.units, passage.file)


def _question_ids(text: str, tokenizer: Tokenizer) -> NDArray[np.int32]:
    ids = tokenizer.question(text)
    if not len(ids):
        raise Faulty(f"the question is {text!r}, words are needed")
    return ids


def hard_negatives(
    sources: Iterable[ExampleSource], questions: squad.QuestionSet, tokenizer: Tokenizer
) -> list[Example]:
    """Returns for each answerable question the paragraph of its article most like an answer that lacks the answer.

    Likeness is the summed rarity (inverse document frequency within the article) of the question's wordpieces that the
    paragraph has. Questions of articles where every paragraph has the answer's text give none.
    """
    articles: dict[str, list[squad.Paragraph]] = {}
    for paragraph in questions.paragraphs:
        articles.setdefault(_article(paragraph.id), []).append(paragraph)
    shelves = {name: _Shelf.of(paragraphs, tokenizer) for name, paragraphs in articles.items()}
    negatives = []
    for source in sources:
        document = source.question.document
        if source.example.answer is None or document is None or _article(document) not in shelves:
            continue
        passage = shelves[_article(document)].likest(source)
        if passage is not None:
            negatives.append(Example(source.example.question, passage, None, np.zeros(len(passage), dtype=np.int8)))
    return negatives


def _article(paragraph: str) -> str:
    return paragraph.rsplit("/", 1)[0]


@dataclass(frozen=True, slots=True)
class _Shelf:
    """An article's paragraphs, ready to be compared with questions."""

    texts: tuple[str, ...]  # lower case, as answers are looked for in them
    passages: tuple[NDArray[np.int32], ...]
    pieces: tuple[frozenset[int], ...]
    rarity: dict[int, float]  # log(paragraphs / paragraphs with the piece), by wordpiece

    @classmethod
    def of(cls, paragraphs: Sequence[squad.Paragraph], tokenizer: Tokenizer) -> Self:
        passages = tuple(tokenizer.passage(paragraph.text).ids for paragraph in paragraphs)
        pieces = tuple(frozenset(ids.tolist()) for ids in passages)
        counts: dict[int, int] = {}
        for piece in (piece for of_one in pieces for piece in of_one):
            counts[piece] = counts.get(piece, 0) + 1
        rarity = {piece: float(np.log(len(paragraphs) / count)) for piece, count in counts.items()}
        return cls(tuple(paragraph.text.lower() for paragraph in paragraphs), passages, pieces, rarity)

    def likest(self, source: ExampleSource) -> NDArray[np.int32] | None:
        """The passage most like the question among those without any of its answers."""
        answers = [answer.lower() for answer in source.question.answers]
        question = set(source.example.question.tolist())
        best, best_score = None, 0.0
        for text, passage, pieces in zip(self.texts, self.passages, self.pieces, strict=True):
            score = sum(self.rarity[piece] for piece in question & pieces)
            if score > best_score and not any(answer in text for answer in answers):
                best, best_score = passage, score
        return best
