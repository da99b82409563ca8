"""How sure an answer is: from a candidate's logits and rank to a probability, and the line below which nothing is said.

A question's candidates come from several passages of several shards. Each is scored alone, with the best rank among
all of them as the only thing shared, so the score does not depend on how the corpus is sharded. The weights are the
reader's: ``scoring.json`` beside its network, in Redis the model's TAG. They are fitted by `calibrate.py`.
"""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass, fields
from functools import cache
from pathlib import Path

from shardqa.errors import BadModel
from shardqa.models import shipped

SCORING_FILE = "scoring.json"

FARTHEST = 30.0
"""Log-odds are held within +-this, so that no score is exactly 0 or 1."""


@dataclass(frozen=True, slots=True)
class Scoring:
    """A logistic regression over a candidate's two signals, margin and lag."""

    bias: float
    """Log-odds that a candidate is right with every signal at 0."""
    margin: float
    """Log-odds per logit that the span lies above "the passage does not say" (span_logit - null_logit)."""
    lag: float
    """Log-odds per lag: 0 for the question's best passage, 1 for one whose rank score is 0; negative."""
    no_answer_below: float
    """Probability under which the answer is "the documents don't say"."""

    @classmethod
    def load(cls, folder: Path) -> Scoring:
        """Read ``scoring.json`` of a reader's folder; raises BadModel when it is missing or not of this form."""
        path = folder / SCORING_FILE
        try:
            return cls(**{name: float(value) for name, value in json.loads(path.read_bytes()).items()})
        except (OSError, ValueError, TypeError, AttributeError) as error:
            raise BadModel(f"{path} can't be read: {error}; fit it again with 'shardqa models calibrate'") from None

    @classmethod
    def of_label(cls, label: str) -> Scoring | None:
        """What `on_label` wrote; None where the label holds no scoring, or not all of it."""
        words = dict(word.split("=", 1) for word in label.split() if "=" in word)
        try:
            found = {field.name: float(words[field.name]) for field in fields(cls)}
        except (KeyError, ValueError):
            return None
        return cls(**found) if all(math.isfinite(value) for value in found.values()) else None

    def on_label(self, label: str) -> str:
        """The label with the weights behind it: so they go wherever a model in Redis goes."""
        return " ".join([label, *(f"{name}={value!r}" for name, value in asdict(self).items())])

    def save(self, folder: Path) -> None:
        """Write ``scoring.json`` into a reader's folder."""
        text = json.dumps(asdict(self), indent=2) + "\n"
        (folder / SCORING_FILE).write_text(text, encoding="utf-8")

    def score(self, span_logit: float, null_logit: float, rank_score: float, best_rank: float) -> float:
        """The probability, above 0 and below 1, that this span answers the question.

        ``best_rank`` is the highest rank score among the question's candidates.
        """
        odds = self.bias + self.margin * (span_logit - null_logit) + self.lag * lag(rank_score, best_rank)
        return 1 / (1 + math.exp(-max(-FARTHEST, min(FARTHEST, odds))))


def lag(rank_score: float, best_rank: float) -> float:
    """How far a passage ranks below the best, 0 to 1: rank scores grow with corpus and question, this does not."""
    return min(1.0, max(0.0, 1 - rank_score / best_rank)) if best_rank > 0 else 0.0


@cache
def shipped_scoring() -> Scoring:
    """The shipped reader's; also of a model that came into Redis without one."""
    return Scoring.load(shipped.folder())
