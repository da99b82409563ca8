"""The line that an answer's score has to reach: the user's choice, and each reader's scores for it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

AnswerWhen = Literal["unsure", "balanced", "sure"]  # answer when unsure, balanced, or only when sure

UNHEARD = (
    0.4  # the highest score of an answer where a name of the question stands in no passage: of 42 such 2 were right
)
FAR = 0.05  # a score below which what comes nearest is about something else


def verdict(absent: Sequence[str], parts: Sequence[object]) -> str:
    """A few words for people to whom nothing is answered."""
    if parts:
        return "no sure answer"
    if absent:
        return f"the documents don't mention {' or '.join(absent)}"
    return "no answer was found; other words, or a search, may find one"


@dataclass(frozen=True, slots=True)
class Lines:
    """Scores below which nothing is answered, 0 to 1, by what the user prefers."""

    unsure: float
    balanced: float
    sure: float

    def of(self, when: AnswerWhen) -> float:
        return float(getattr(self, when))
