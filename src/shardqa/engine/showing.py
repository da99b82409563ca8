"""Decides what people are shown beside an answer, or in place of one: nothing of another matter, nothing twice.

Pages, search box and command line show what is decided here; programs have all candidates with their scores.
"""

from collections.abc import Sequence

from shardqa import analysis
from shardqa.analysis import Query
from shardqa.schema import Candidate, Part

NEAR = 1 / 3  # share of the first one's score from which another answer is possible


def same_matter(query: Query, parts: Sequence[Part]) -> list[Part]:
    """The parts that have a word of the question, or their title has; all where none has, since meaning led there."""
    return [one for one in parts if query.matter & analysis.matter(f"{one.title} {one.text}")] or list(parts)


def others(query: Query, answer: str | None, n_best: Sequence[Candidate]) -> list[Candidate]:
    """The candidates, marked as `possible` where they are near the first and say what none of the others says.

    Without an answer they are guesses, which must have a word of the question in their passage or its title, too.
    """
    words = [analysis.content(answer or ""), set(query.content)]
    marks = list[Candidate]()
    for candidate in n_best:
        own = analysis.content(candidate.answer)
        is_of_it = answer is not None or query.matter & analysis.matter(f"{candidate.title} {candidate.passage}")
        is_near = candidate.score >= NEAR * n_best[0].score
        possible = bool(is_of_it) and is_near and not any(own <= other for other in words)
        words += [own] * possible
        marks.append(candidate.model_copy(update={"possible": True}) if possible else candidate)
    return marks
