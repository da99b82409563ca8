"""Decides what people are shown beside an answer, or in place of one: nothing of another matter, nothing twice.

Pages, search box and command line show what is decided here; programs have all candidates with their scores.
"""

from collections.abc import Sequence

from shardqa import analysis, languages
from shardqa.schema import Candidate, Part

NEAR = 1 / 3  # share of the first one's score from which another answer is possible
STEM = 4  # letters that two forms of a word share at least


def same_matter(question: str, parts: Sequence[Part]) -> list[Part]:
    """The parts that have a word of the question, or their title has; all where none has, since meaning led there."""
    matter = _matter(question)
    return [one for one in parts if matter & _matter(f"{one.title} {one.text}")] or list(parts)


def others(question: str, answer: str | None, n_best: Sequence[Candidate]) -> list[Candidate]:
    """The candidates, marked as `possible` where they are near the first and say what none of the others says.

    Without an answer they are guesses, which must have a word of the question in their passage or its title, too.
    """
    words, matter = [_content(answer or ""), _content(question)], _matter(question)
    marks = list[Candidate]()
    for candidate in n_best:
        own = _content(candidate.answer)
        is_of_it = answer is not None or matter & _matter(f"{candidate.title} {candidate.passage}")
        is_near = candidate.score >= NEAR * n_best[0].score
        possible = bool(is_of_it) and is_near and not any(own <= other for other in words)
        words += [own] * possible
        marks.append(candidate.model_copy(update={"possible": True}) if possible else candidate)
    return marks


def _content(text: str) -> set[str]:
    return {word for word in analysis.words(text) if word not in analysis.STOP_WORDS}


def _matter(text: str) -> set[str]:
    """Returns what a text is about: its words without endings, and without those that any question may have."""
    words = (word for word in analysis.words(text) if word not in languages.ENGLISH)
    return {word[: max(STEM, len(word) - 3)] if len(word) > STEM else word for word in words}
