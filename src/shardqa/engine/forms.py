"""Puts an answer together in each form, of one reading: a span, sentences, or a list. Pure functions."""

from collections.abc import Sequence
from dataclasses import dataclass

from shardqa import answer_forms, metadata
from shardqa.answer_forms import Form
from shardqa.answer_lines import Lines
from shardqa.engine import lists, parts
from shardqa.engine.merging import ScoredSpan, lines_of
from shardqa.engine.parts import Excerpt
from shardqa.models.reading_record import ShardReading
from shardqa.models.scoring import Ranks, signals_of
from shardqa.models.subject import Subject
from shardqa.schema import Candidate, Composed, Part


@dataclass(frozen=True, slots=True)
class Answers:
    """The answer to a question in each form."""

    composed: dict[Form, Composed]  # empty where nothing was found
    auto: Form  # the one for who leaves that open


def answers(
    candidates: Sequence[Candidate],
    spans: Sequence[ScoredSpan],
    sentences: Sequence[Excerpt],
    readings: Sequence[ShardReading],
    question: str,
    subject: Subject,
    ranks: Ranks,
) -> Answers:
    """`spans`, `sentences` and `candidates`, of those that are apart, come best first; `ranks` are of all passages
    found, read or not."""
    if not candidates or not sentences:
        return Answers({}, "span")
    best, below = spans[0], lines_of(readings)
    span, evidence, items = parts.of_span(best), parts.answering(sentences), parts.items(spans)
    if (steps := lists.whole(evidence, sentences, question)) is not None:
        evidence = sorted(parts.distinct([steps, *evidence]), key=lambda one: one.start)
    supporting, texts = parts.supporting(sentences, candidates[0]), parts.joined(evidence)
    whole_list, headed = lists.whole(items, sentences, question), lists.headed(sentences, question)
    headed = headed or lists.numbered(sentences, question)
    excerpts, sureness = ([whole_list], whole_list.score) if whole_list is not None else (items, best.score)
    excerpts, sureness = (headed, headed[0].score) if headed else (excerpts, sureness)
    listed = parts.joined(headed) or [one.part() for one in excerpts]
    forms: dict[Form, Composed] = {
        "span": _composed(span, span.part(), supporting, best.score, below),
        "sentences": _composed(evidence[0], texts[0], texts, *_sureness(sentences, best, subject, ranks)),
        "list": _composed(excerpts[0], listed[0], listed, sureness, below),
    }
    return Answers(forms, "list" if headed else answer_forms.chosen(question, len(items) + (whole_list is not None)))


def _composed(first: Excerpt, head: Part, of: list[Part], score: float, below: Lines) -> Composed:
    """`first` is where the head begins."""
    return Composed(
        head=head,
        parts=of,
        score=score,
        below=below,
        passage=first.passage.text,
        passage_start=first.passage.start,
        metadata=metadata.unpack(first.passage.metadata),
    )


def _sureness(sentences: Sequence[Excerpt], best: ScoredSpan, subject: Subject, ranks: Ranks) -> tuple[float, Lines]:
    """The probability that the best sentence answers, and the lines for it; the sentences are scored by one reader."""
    signals = signals_of(sentences, ranks, subject, 1)[0]
    return best.scoring.sentences_chance(signals), best.scoring.sentences_below
