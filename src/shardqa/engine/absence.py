"""Words of a question that no passage has: what the documents don't mention. Pure functions."""

from collections.abc import Mapping, Sequence

from shardqa import analysis, languages
from shardqa.answer_lines import FAR
from shardqa.engine import showing
from shardqa.models.subject import COUNTED, Subject
from shardqa.question import Question
from shardqa.schema import Composed, MergedCandidates, Part
from shardqa.statistics import CorpusStatistics


def of(statistics: CorpusStatistics, bearers: Sequence[Mapping[str, int]]) -> tuple[str, ...]:
    """The terms that neither a passage nor, by shard, a title has."""
    absent = (term for term in statistics.cf if not statistics.df.get(term))
    return tuple(term for term in absent if not any(titles.get(term) for titles in bearers))


def names_of(question: Question, absent: Sequence[str], passage: str) -> list[str]:
    """The names, numbers and codes of the question that no passage has, nor this one in another spelling."""
    unheard = Subject.of(question.told, tuple(absent)).unheard(passage) if absent else ()
    numbers = [number for name in unheard for number in COUNTED.findall(name)]  # of "route67" the second word
    return analysis.words_with(question.wording, analysis.stems([*unheard, *numbers]))


def words_of(wording: str, absent: Sequence[str]) -> list[str]:
    """The question's words with these terms, without those that any question may have."""
    return [word for word in analysis.words_with(wording, absent) if word.lower() not in languages.ENGLISH]


def nearest(candidates: MergedCandidates, question: Question, best: Composed | None) -> list[Part]:
    """The best sentences; none where all are about something else: by the score, or as no passage has a word of it."""
    is_far = best is None or best.score < FAR or set(question.query.terms) <= set(candidates.absent)
    return [] if is_far else showing.same_matter(question.query, candidates.likeliest)
