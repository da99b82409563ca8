"""The line that an answer's score has to reach: the user's choice, and each reader's scores for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

AnswerWhen = Literal["unsure", "balanced", "sure"]
"""Answer when unsure, balanced, or only when sure."""


@dataclass(frozen=True, slots=True)
class Lines:
    """Scores below which nothing is answered, 0 to 1, by what the user prefers."""

    unsure: float
    balanced: float
    sure: float

    def of(self, when: AnswerWhen) -> float:
        return float(getattr(self, when))
