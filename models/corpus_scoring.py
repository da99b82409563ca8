"""A corpus's own scores: the reader's scoring with an answer's weights and lines fitted on the corpus's questions.

What is stored in Redis under `ask:<corpus>:scoring`. It belongs to one reader: over another's logits it means nothing,
so that reader's own scores count then.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from hashlib import blake2b
from typing import Literal

from pydantic import BaseModel, ConfigDict, FiniteFloat, ValidationError

from shardqa.answer_lines import Lines
from shardqa.models.scoring import AnswerWeights, Scoring

DIGEST_BYTES = 6  # as an epoch's name in keys: few scorings are ever compared


class FittedOn(BaseModel):
    """Questions that a corpus's scores were fitted on, and what that gained on others."""

    at: str  # ISO 8601, UTC
    answerable: int  # questions
    absent: int
    tricks: int
    log_loss_before: float  # nats a question
    log_loss_after: float


class CorpusScoring(BaseModel):
    model_config = ConfigDict(frozen=True)

    version: Literal[1] = 1
    reader: str  # digest of the reader's scoring that it was fitted over
    answer: dict[str, FiniteFloat]  # AnswerWeights
    below: dict[str, FiniteFloat]  # Lines
    fitted: FittedOn
    previous: CorpusScoring | None = None  # what it replaced, whose own `previous` is gone

    @classmethod
    def of(cls, fitted_scoring: Scoring, readers: Scoring, fitted: FittedOn) -> CorpusScoring:
        record = fitted_scoring.record()
        return cls(reader=digest(readers), answer=record["answer"], below=record["below"], fitted=fitted)

    @classmethod
    def parsed(cls, value: bytes | str) -> CorpusScoring | None:
        """Returns the scoring that a value of Redis holds; None where it is none of ours."""
        try:
            scoring = cls.model_validate_json(value)
            scoring.weights()
        except (ValidationError, TypeError):
            return None
        return scoring

    def weights(self) -> tuple[AnswerWeights, Lines]:
        return AnswerWeights(**self.answer), Lines(**self.below)

    def fits(self, readers: Scoring) -> bool:
        return digest(readers) == self.reader

    def over(self, readers: Scoring) -> Scoring:
        """Returns the reader's scoring with the corpus's weights and lines; unchanged where those are of another."""
        if not self.fits(readers):
            return readers
        answer, below = self.weights()
        return replace(readers, answer=answer, below=below)

    @cached_property
    def name(self) -> str:
        """Returns a short digest of reader, weights and lines: cached answers are kept under it."""
        return _digest(self.model_dump_json(include={"reader", "answer", "below"}))


def digest(readers: Scoring) -> str:
    return _digest(repr(readers))


def _digest(text: str) -> str:
    return blake2b(text.encode(), digest_size=DIGEST_BYTES).hexdigest()
