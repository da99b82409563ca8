"""From many shards' replies to one."""

import math
from dataclasses import replace
from typing import Any

import pytest

from shardqa.answer_lines import AnswerWhen, Lines
from shardqa.config import Settings
from shardqa.engine import merging
from shardqa.engine.merging import conclude, lines_of
from shardqa.filters import View
from shardqa.models.scoring import WIDEST, AnswerWeights, Scoring, Signals, SpanWeights
from shardqa.question import Question
from shardqa.schema import Candidate, MergedCandidates, Part, ShardUse, Timing

Span = tuple[dict[str, Any], float]  # and the rank score of its passage


def span(document: str, start: int, end: int, margin: float, rank: float = 10.0) -> Span:
    return {
        "passage": f"{document} {rank}", "document": document, "text": "x" * (end - start), "start": start, "end": end,
        "span_logit": margin, "null_logit": 0.0, "sentence": [start, end],
    }, rank  # fmt: skip


SCORING = Scoring(
    span=SpanWeights(bias=-3.0, margin=0.5, lag=-0.2),
    answer=AnswerWeights(bias=-2.0, margin=0.4, lag=-0.5, gap=0.1, fall=0.5, length=-0.2),
    below=Lines(unsure=0.1, balanced=0.4, sure=0.6),
    no_answer_below=0.4,
)


STRICT = Lines(unsure=0.3, balanced=0.7, sure=0.9)


def shard(tag: str, *spans: Span, scoring: Scoring = SCORING) -> dict[str, Any]:
    passages = {one["passage"]: {"title": "T", "text": "p", "start": 0, "rank_score": rank} for one, rank in spans}
    return {"tag": tag, "spans": [one for one, _ in spans], "passages": passages, "scores": scoring.record()}


def candidates_of(replies: list[dict[str, Any]], question: str = "q?") -> list[Candidate]:
    """The candidates where all passages that were found have been read."""
    ranks = [passage["rank_score"] for reply in replies for passage in reply["passages"].values()]
    return merging.candidates_of(replies, question, ranks)


def conclusion(merged: MergedCandidates, min_score: float | None, when: AnswerWhen = "balanced") -> Any:
    question = Question.of("q?", Settings(n_best=3), answer_when=when, min_score=min_score)
    return conclude(merged, question, "m", None, [], Timing())


def test_candidates_of_all_shards_come_best_first() -> None:
    found = candidates_of(
        [shard("a", span("d1", 0, 3, 1.0)), shard("b", span("d2", 0, 3, 5.0), span("d3", 0, 3, 3.0))], "q?"
    )
    assert [c.document for c in found] == ["d2", "d3", "d1"]
    assert [c.score for c in found] == sorted((c.score for c in found), reverse=True)


def test_a_candidate_never_shows_a_higher_score_than_the_one_before_it() -> None:
    likelier_alone = span("d1", 0, 3, 2.0, rank=10.0)
    surer_in_its_words = span("d2", 0, 3, 4.0, rank=1.0)
    steep = replace(SCORING, span=SpanWeights(bias=0.0, margin=0.1, lag=-9.0))
    first, second = candidates_of([shard("a", likelier_alone, surer_in_its_words, scoring=steep)])
    assert (first.document, second.document) == ("d1", "d2")
    assert first.score == second.score


def test_of_overlapping_spans_of_one_document_the_better_stays() -> None:
    found = candidates_of(
        [shard("a", span("d", 10, 20, 2.0), span("d", 15, 25, 4.0), span("d", 20, 22, 1.0), span("e", 15, 25, 1.0))],
    )
    assert {(c.document, c.start) for c in found} == {("d", 15), ("e", 15)}


def test_a_candidate_is_scored_as_its_reader_says() -> None:
    (found,) = candidates_of([shard("a", span("d", 0, 3, 2.0))], "two words")
    alone = Signals(margin=2.0, lag=0.0, gap=WIDEST, fall=1.0, length=math.log(3))
    assert found.score == pytest.approx(SCORING.confidence(alone))


def test_an_answer_that_another_contests_is_less_sure() -> None:
    lonely = candidates_of([shard("a", span("d", 0, 3, 2.0))])[0]
    contested = candidates_of([shard("a", span("d", 0, 3, 2.0)), shard("b", span("e", 0, 4, 1.9))])[0]
    assert contested.score < lonely.score


def test_scores_are_the_same_however_the_spans_are_spread_over_shards() -> None:
    spans = [span("d", 0, 3, 2.0), span("e", 0, 4, 1.9, rank=8.0), span("f", 0, 5, 1.0, rank=7.0)]
    together = candidates_of([shard("a", *spans)])
    apart = candidates_of([shard("a", spans[2], spans[0]), shard("a", spans[1])])
    assert together == apart


def test_nothing_is_answered_below_the_readers_threshold() -> None:
    assert lines_of([shard("a"), shard("b")]) == SCORING.below


def test_while_a_reader_is_being_replaced_the_stricter_threshold_holds() -> None:
    assert lines_of([shard("a"), shard("b", scoring=replace(SCORING, below=STRICT))]) == STRICT


def test_the_order_of_the_shards_does_not_matter() -> None:
    one, two = shard("a", span("d1", 0, 3, 1.0)), shard("b", span("d2", 0, 3, 1.0))
    assert candidates_of([one, two]) == candidates_of([two, one])


@pytest.mark.parametrize(("below", "refused"), [(0.0, False), (1.0, True)])
def test_without_min_score_the_readers_threshold_decides(below: float, refused: bool) -> None:
    found = candidates_of([shard("a", span("d", 0, 3, 1.0))])
    asked = MergedCandidates(candidates=found, below=Lines(0.5, below, 0.5), shards=[])
    assert conclusion(asked, None).no_answer is refused


@pytest.mark.parametrize(("when", "refused"), [("unsure", False), ("balanced", False), ("sure", True)])
def test_the_user_chooses_how_sure_an_answer_has_to_be(when: AnswerWhen, refused: bool) -> None:
    found = candidates_of([shard("a", span("d", 0, 3, 1.0))])
    lines = Lines(unsure=0.0, balanced=found[0].score, sure=found[0].score + 0.01)
    answer = conclusion(MergedCandidates(candidates=found, below=lines, shards=[]), None, when)
    assert answer.no_answer is refused
    assert answer.needed == lines.of(when)


def test_no_candidate_is_no_answer() -> None:
    answer = conclusion(MergedCandidates(candidates=[], below=SCORING.below, shards=[]), None)
    assert (answer.answer, answer.no_answer, answer.score) == (None, True, 0.0)


def part(text: str) -> Part:
    return Part(text=text, document="d", title="T", start=0, end=len(text), score=0.5)


@pytest.mark.parametrize(("min_score", "parts"), [(0.0, "holds it"), (1.0, "comes near")])
def test_parts_support_an_answer_or_come_nearest_to_one(min_score: float, parts: str) -> None:
    asked = MergedCandidates(
        candidates=candidates_of([shard("a", span("d", 0, 3, 1.0))]), below=SCORING.below, shards=[],
        supporting=[part("holds it")], likeliest=[part("comes near")],
    )  # fmt: skip
    answer = conclusion(asked, min_score)
    assert [one.text for one in answer.parts] == [parts]
    assert [one.text for one in answer.evidence] == ([] if answer.no_answer else [parts])


@pytest.mark.parametrize(("min_score", "refused"), [(0.0, False), (1.0, True)])
def test_min_score_decides_between_answer_and_refusal(min_score: float, refused: bool) -> None:
    found = candidates_of([shard("a", span("d", 0, 3, 1.0))])
    answer = conclusion(MergedCandidates(candidates=found, below=SCORING.below, shards=[]), min_score)
    assert answer.no_answer is refused
    assert (answer.answer is None) is refused
    assert len(answer.n_best) == 1


def test_whom_documents_are_hidden_from_sees_neither_times_nor_keys_of_shards() -> None:
    use = ShardUse(node="a:1", tag="06S", passages=1, cached=False, key="answer:c:{06S}:7", us={"run": 5})
    merged = MergedCandidates(candidates=[], below=SCORING.below, shards=[use])
    for view, expected in ((None, use), (View(title="T"), use.model_copy(update={"us": {}, "key": ""}))):
        question = Question.of("q?", Settings(), filter=view)
        assert conclude(merged, question, "m", None, [], Timing()).shards == [expected]
