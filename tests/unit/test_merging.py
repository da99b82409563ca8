"""From many shards' replies to one."""

from dataclasses import asdict, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardqa.answer import Asked, Timing
from shardqa.merging import candidates_of, conclude, sum_terms, threshold_of
from shardqa.models.scoring import Scoring

Span = tuple[dict[str, Any], float]  # and the rank score of its passage


def span(document: str, start: int, end: int, margin: float, rank: float = 10.0) -> Span:
    return {
        "passage": f"{document} {rank}", "document": document, "text": "x" * (end - start), "start": start, "end": end,
        "span_logit": margin, "null_logit": 0.0,
    }, rank  # fmt: skip


SCORING = Scoring(bias=-3.0, margin=0.5, lag=-0.2, no_answer_below=0.4)


def shard(tag: str, *spans: Span, scoring: Scoring = SCORING) -> dict[str, Any]:
    passages = {one["passage"]: {"title": "T", "text": "p", "start": 0, "rank_score": rank} for one, rank in spans}
    return {"tag": tag, "spans": [one for one, _ in spans], "passages": passages, "scoring": asdict(scoring)}


def conclusion(asked: Asked, min_score: float | None) -> Any:
    return conclude(asked, "q?", "c", "m", 3, min_score, None, [], Timing())


@given(
    st.lists(
        st.fixed_dictionaries({"passages": st.integers(0, 99), "df": st.dictionaries(st.text(), st.integers(0, 9))})
    )
)
def test_statistics_add_up_in_any_order(replies: list[dict[str, Any]]) -> None:
    assert sum_terms(replies) == sum_terms(replies[::-1])
    assert sum_terms(replies).get("passages", 0) == sum(reply["passages"] for reply in replies)


def test_tags_and_epochs_are_not_summed() -> None:
    assert sum_terms([{"tag": "06S", "epoch": 5, "documents": 1}, {"tag": "5M5", "epoch": 6, "documents": 2}]) == {
        "documents": 3
    }


def test_candidates_of_all_shards_come_best_first() -> None:
    found = candidates_of([shard("a", span("d1", 0, 3, 1.0)), shard("b", span("d2", 0, 3, 5.0), span("d3", 0, 3, 3.0))])
    assert [c.document for c in found] == ["d2", "d3", "d1"]
    assert [c.score for c in found] == sorted((c.score for c in found), reverse=True)


def test_of_overlapping_spans_of_one_document_the_better_stays() -> None:
    found = candidates_of(
        [shard("a", span("d", 10, 20, 2.0), span("d", 15, 25, 4.0), span("d", 20, 22, 1.0), span("e", 15, 25, 1.0))]
    )
    assert {(c.document, c.start) for c in found} == {("d", 15), ("e", 15)}


def test_a_candidate_is_scored_as_its_reader_says() -> None:
    (found,) = candidates_of([shard("a", span("d", 0, 3, 2.0))])
    assert found.score == SCORING.score(2.0, 0.0, 10.0, 10.0)


def test_nothing_is_answered_below_the_readers_threshold() -> None:
    assert threshold_of([shard("a"), shard("b")]) == SCORING.no_answer_below


def test_while_a_reader_is_being_replaced_the_stricter_threshold_holds() -> None:
    assert threshold_of([shard("a"), shard("b", scoring=replace(SCORING, no_answer_below=0.7))]) == 0.7


def test_the_order_of_the_shards_does_not_matter() -> None:
    one, two = shard("a", span("d1", 0, 3, 1.0)), shard("b", span("d2", 0, 3, 1.0))
    assert candidates_of([one, two]) == candidates_of([two, one])


@pytest.mark.parametrize(("below", "refused"), [(0.0, False), (1.0, True)])
def test_without_min_score_the_readers_threshold_decides(below: float, refused: bool) -> None:
    found = candidates_of([shard("a", span("d", 0, 3, 1.0))])
    assert conclusion(Asked(candidates=found, no_answer_below=below, shards=[]), None).no_answer is refused


def test_no_candidate_is_no_answer() -> None:
    answer = conclusion(Asked(candidates=[], no_answer_below=0.4, shards=[]), None)
    assert (answer.answer, answer.no_answer, answer.score) == (None, True, 0.0)


@pytest.mark.parametrize(("min_score", "refused"), [(0.0, False), (1.0, True)])
def test_min_score_decides_between_answer_and_refusal(min_score: float, refused: bool) -> None:
    found = candidates_of([shard("a", span("d", 0, 3, 1.0))])
    answer = conclusion(Asked(candidates=found, no_answer_below=0.4, shards=[]), min_score)
    assert answer.no_answer is refused
    assert (answer.answer is None) is refused
    assert len(answer.n_best) == 1
