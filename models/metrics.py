"""Scores answers and rankings: SQuAD's own exact match and F1 (versions 1.1 and 2.0), recall@k and MRR.

The rules are those of the official evaluation scripts (https://rajpurkar.github.io/SQuAD-explorer/), stated here in
our words: lower case, no ASCII punctuation, no articles, single blanks.
"""

import re
import string
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache

_ARTICLES = re.compile(r"\b(a|an|the)\b", re.UNICODE)
_PUNCTUATION = str.maketrans("", "", string.punctuation)


@lru_cache(1_024)  # a question's candidates are compared after each of its stages
def normalise(answer: str) -> str:
    """Returns a text without capitals, punctuation, articles and extra blanks, taken away in this order."""
    bare = answer.lower().translate(_PUNCTUATION)
    return " ".join(_ARTICLES.sub(" ", bare).split())


def exact_match(answer: str, references: Sequence[str]) -> float:
    """Returns 1.0 if the answer equals any reference once both are normalised, else 0.0.

    No references, or none that says anything once normalised, means "no answer": then "" alone is right.
    """
    return max(float(normalise(answer) == normalise(reference)) for reference in _said(references))


def f1(answer: str, references: Sequence[str]) -> float:
    """Word overlap with the nearest reference, 0.0 to 1.0: harmonic mean of precision and recall over bags of words.

    "No answer" is as in exact_match: there F1 is 1.0 for "" and 0.0 for anything else.
    """
    return max(_f1(normalise(answer).split(), normalise(reference).split()) for reference in _said(references))


def _said(references: Sequence[str]) -> Sequence[str]:
    return [reference for reference in references if normalise(reference)] or [""]


def _f1(answer: list[str], reference: list[str]) -> float:
    if not answer or not reference:
        return float(answer == reference)
    common = sum((Counter(answer) & Counter(reference)).values())
    # 2PR / (P + R) with P = common / len(answer) and R = common / len(reference)
    return 2 * common / (len(answer) + len(reference))


def recall_at(k: int, ranks: Iterable[int | None]) -> float:
    """The share of questions whose document stands among the first k; ranks count from 1, None is not found.

    Raises ValueError when there are no questions.
    """
    return _mean(float(rank is not None and rank <= k) for rank in ranks)


def mean_reciprocal_rank(ranks: Iterable[int | None]) -> float:
    """The mean of 1 / rank over questions, 0 for those not found; raises ValueError when there are none."""
    return _mean(0.0 if rank is None else 1.0 / rank for rank in ranks)


def _mean(values: Iterable[float]) -> float:
    numbers = list(values)
    if not numbers:
        raise ValueError("a mean of 0 questions was asked for; at least 1 is needed")
    return sum(numbers) / len(numbers)
