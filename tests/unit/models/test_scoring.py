"""Scores of candidates: order, bounds, signals and files."""

import math
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardqa.answer_lines import Lines
from shardqa.errors import BadModel
from shardqa.gears_functions.index.bm25 import idf
from shardqa.models.scoring import (
    SCORING_FILE,
    AnswerWeights,
    EvidenceWeights,
    OrderWeights,
    Ranks,
    Scoring,
    Signals,
    SpanWeights,
    shipped_scoring,
    signals_of,
)
from shardqa.models.subject import Subject

ANSWER = AnswerWeights(
    bias=-2.0, margin=0.4, lag=-0.5, gap=0.1, fall=0.5, length=-0.2, rank=0.0, evidence=0.0, relevance=0.0
)
SCORING = Scoring(
    span=SpanWeights(bias=-3.0, margin=0.5, lag=-0.2),
    order=OrderWeights(margin=0.5, lag=-0.2, evidence=0.1, relevance=0.2),
    answer=ANSWER,
    below=Lines(unsure=0.1, balanced=0.4, sure=0.6),
    no_answer_below=0.4,
    sentences=ANSWER,
    sentences_below=Lines(unsure=0.1, balanced=0.4, sure=0.6),
)
NUMBERS = st.floats(-1e6, 1e6)


class Read(NamedTuple):
    """A candidate."""

    text: str
    margin: float
    rank_score: float = 5.0
    evidence: float = 0.0
    relevance: float = 0.0
    said: str = ""
    around: str = ""


WHO = Subject.of("who was it?")


@given(NUMBERS, NUMBERS, NUMBERS, NUMBERS)
def test_a_score_lies_between_zero_and_one_exclusive(span: float, null: float, rank: float, best: float) -> None:
    assert 0 < SCORING.score(span, null, rank, best) < 1


@given(st.floats(-10, 10), st.floats(0, 20))
def test_a_larger_margin_never_scores_lower(span: float, rank: float) -> None:
    assert SCORING.score(span + 1, 0, rank, 20) >= SCORING.score(span, 0, rank, 20)


@given(st.floats(-10, 10), st.floats(0, 19))
def test_a_better_rank_never_scores_lower(span: float, rank: float) -> None:
    assert SCORING.score(span, 0, rank + 1, 20) >= SCORING.score(span, 0, rank, 20)


def test_the_scale_of_rank_scores_does_not_matter() -> None:
    assert SCORING.score(5, 0, 6, 12) == SCORING.score(5, 0, 60, 120)


def test_rank_scores_that_are_all_zero_say_nothing() -> None:
    assert SCORING.score(5, 0, 0, 0) == SCORING.score(5, 0, 12, 12)


def test_the_shipped_lines_are_probabilities_in_order() -> None:
    below = shipped_scoring().below
    assert 0 < below.unsure <= below.balanced <= below.sure < 1


@given(st.builds(Signals, NUMBERS, NUMBERS, NUMBERS, NUMBERS, NUMBERS))
def test_a_confidence_lies_between_zero_and_one_exclusive(signals: Signals) -> None:
    assert 0 < SCORING.confidence(signals) < 1


@given(st.lists(st.builds(Read, st.sampled_from(["Ada", "the Ada", "Bob", "Eve"]), NUMBERS, st.floats(0, 99))))
def test_the_order_of_candidates_and_ranks_does_not_change_their_signals(candidates: list[Read]) -> None:
    ranks = [one.rank_score for one in candidates]
    turned = signals_of(candidates[::-1], Ranks(ranks[::-1], 9), WHO)
    assert signals_of(candidates, Ranks(ranks, 9), WHO) == turned[::-1]


def test_the_gap_is_to_the_best_candidate_with_other_words() -> None:
    candidates = [
        Read("Ada", 9),
        Read("the Ada.", 8),
        Read("Bob", 6),
        Read("Eve", 1),
    ]
    assert [one.gap for one in signals_of(candidates, Ranks([5.0], 9), WHO)] == [3, 2, -3, -8]


def test_the_first_candidates_alone_have_the_signals_that_they_have_among_all() -> None:
    found = [Read("Ada", 9), Read("Bob", 6), Read("Eve", 8)]
    assert signals_of(found, Ranks([5.0], 9), WHO, 2) == signals_of(found, Ranks([5.0], 9), WHO)[:2]


def test_the_fall_is_from_the_best_passage_to_the_second() -> None:
    (only,) = signals_of([Read("Ada", 1, 20)], Ranks([15.0, 20.0, 3.0], 9), WHO)
    assert (only.fall, only.lag) == (0.25, 0.0)


def test_a_passage_that_has_a_words_only_mention_ranks_about_as_high_in_a_small_corpus_as_in_a_large_one() -> None:
    small, large = (Ranks([], passages).height(idf(1, passages)) for passages in (1, 100_000))
    assert small == pytest.approx(large) == pytest.approx(math.log(2))


def test_a_saved_scoring_loads_the_same(tmp_path: Path) -> None:
    SCORING.save(tmp_path)
    assert Scoring.load(tmp_path) == SCORING


@given(
    st.builds(
        Scoring,
        st.builds(SpanWeights, *[NUMBERS] * 3),
        st.builds(OrderWeights, *[NUMBERS] * 4),
        st.builds(AnswerWeights, *[NUMBERS] * 13),
        st.builds(Lines, NUMBERS, NUMBERS, NUMBERS),
        NUMBERS,
        st.builds(AnswerWeights, *[NUMBERS] * 13),
        st.builds(Lines, NUMBERS, NUMBERS, NUMBERS),
        st.builds(EvidenceWeights, NUMBERS, NUMBERS, NUMBERS, NUMBERS),
    )
)
def test_a_scoring_comes_back_from_a_label(scoring: Scoring) -> None:
    assert Scoring.of_label(scoring.on_label("reader@0123456789abcdef")) == scoring


@pytest.mark.parametrize("label", ["", "v1", "a=b", "scoring={", "scoring=[]", "scoring={}",
                                   'scoring={"version":3}', 'scoring={"version":2,"span":{}}'])  # fmt: skip
def test_a_label_without_a_whole_scoring_has_none(label: str) -> None:
    assert Scoring.of_label(label) is None


@given(NUMBERS, st.floats(0, 1))
def test_of_spans_alike_the_one_of_a_passage_that_answers_comes_first(margin: float, lag: float) -> None:
    first, second = (Read("a", margin, relevance=logit) for logit in (1.0, 0.0))
    assert SCORING.precedence(first, lag) >= SCORING.precedence(second, lag)


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"bias": "high"}', '{"slope": 1}'])
def test_a_broken_scoring_file_is_a_bad_model(tmp_path: Path, content: str) -> None:
    (tmp_path / SCORING_FILE).write_text(content)
    with pytest.raises(BadModel, match=SCORING_FILE):
        Scoring.load(tmp_path)
