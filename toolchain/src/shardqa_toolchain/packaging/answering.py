"""A question and passages in, the best answer out: the whole reader in one process, without a cluster."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from shardqa.errors import BadDocument, BadLimit, DocumentTooLarge, EmptyQuestion
from shardqa.models import sentences
from shardqa.models.reader import Row
from shardqa.models.scoring import Scoring
from shardqa.models.session import Logits, ReaderSession
from shardqa.models.tokenizer import PassageTokens, Tokenizer
from shardqa_toolchain.windows import best_span, windows

MAX_PASSAGES = 100  # passages of one question
MAX_CHARACTERS = 200_000  # of all passages of one question: some 400 windows, half a minute on one slow processor


@dataclass(frozen=True, slots=True)
class Answered:
    """The answer to a question; ``text`` is None when the passages don't say."""

    text: str | None
    score: float
    """Probability that the best span answers the question, also where it is too low to be given; 0 without a span."""
    passage: int | None  # number of the passage that holds the answer, from 0
    start: int | None  # characters of that passage, half open: ``passages[passage][start:end] == text``
    end: int | None


@dataclass(frozen=True, slots=True)
class _Candidate:
    score: float
    passage: int
    start: int
    end: int


class Answerer:
    """A reader with its tokenizer and its scoring; may be called from several threads."""

    def __init__(self, folder: Path, threads: int = 1, session: ReaderSession | None = None) -> None:
        """Load a reader's folder, but a session that is open; raises BadModel, FileNotFoundError for a missing file."""
        self.tokenizer = Tokenizer.load(folder)
        self._session = session or ReaderSession(folder, threads)
        self._scoring = Scoring.load(folder)

    def answer(self, question: str, passages: Sequence[str]) -> Answered:
        """Read the passages whole, long ones in overlapping windows, each as likely as the others to hold the answer.

        Raises EmptyQuestion, QuestionTooLong, BadData, BadDocument, DocumentTooLarge, BadLimit, BadModel.
        """
        _check(passages)
        ids = self.tokenizer.question(question)
        if not len(ids):
            raise EmptyQuestion("the question has no words; ask something")
        tokens = [self.tokenizer.passage(text) for text in passages]
        rows = [list(windows(ids, one.ids)) for one in tokens]
        logits = iter(self._session.read([row for cut in rows for _, row in cut]))
        spans = [
            self._candidate(number, passages[number], tokens[number], cut, [next(logits) for _ in cut])
            for number, cut in enumerate(rows)
        ]
        return self._conclude([one for one in spans if one is not None], passages)

    def _candidate(
        self, number: int, text: str, tokens: PassageTokens, rows: list[tuple[int, Row]], logits: list[Logits]
    ) -> _Candidate | None:
        span = best_span(rows, logits, sentences.numbers(text, tokens.offsets))
        if span is None:
            return None
        score = self._scoring.score(span.logit, span.null_logit, 1.0, 1.0)
        return _Candidate(
            score, number, int(tokens.offsets[span.start_token, 0]), int(tokens.offsets[span.end_token, 1])
        )

    def _conclude(self, candidates: Sequence[_Candidate], passages: Sequence[str]) -> Answered:
        best = max(candidates, key=lambda one: one.score, default=None)
        if best is None or best.score < self._scoring.no_answer_below:
            return Answered(None, best.score if best else 0.0, None, None, None)
        return Answered(passages[best.passage][best.start : best.end], best.score, best.passage, best.start, best.end)


def _check(passages: Sequence[str]) -> None:
    if not 1 <= len(passages) <= MAX_PASSAGES:
        raise BadLimit(f"{len(passages)} passages are given, 1 to {MAX_PASSAGES} are read; send the likeliest ones")
    for number, text in enumerate(passages):
        if not text.strip():
            raise BadDocument(f"passage {number} is empty; send the text to read")
    characters = sum(map(len, passages))
    if characters > MAX_CHARACTERS:
        raise DocumentTooLarge(
            f"the passages have {characters:,} characters, at most {MAX_CHARACTERS:,} are read; send fewer"
        )
