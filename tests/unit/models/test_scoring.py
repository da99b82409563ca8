"""Scores of candidates: order, bounds, files, and fitting on made-up questions whose truth is known."""

import json
import math
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardqa.answer_lines import AnswerWhen, Lines
from shardqa.errors import BadData, BadModel
from shardqa.gears_functions.index.bm25 import idf
from shardqa.models import calibrate
from shardqa.models.scoring import (
    SCORING_FILE,
    SENTENCES,
    AnswerWeights,
    EvidenceWeights,
    Ranks,
    Scoring,
    Signals,
    Spanned,
    SpanWeights,
    shipped_scoring,
    signals_of,
)

SCORING = Scoring(
    span=SpanWeights(bias=-3.0, margin=0.5, lag=-0.2),
    answer=AnswerWeights(bias=-2.0, margin=0.4, lag=-0.5, gap=0.1, fall=0.5, length=-0.2),
    below=Lines(unsure=0.1, balanced=0.4, sure=0.6),
    no_answer_below=0.4,
)
NUMBERS = st.floats(-1e6, 1e6)


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


@given(
    st.lists(st.builds(Spanned, st.sampled_from(["Ada", "the Ada", "Bob", "Eve"]), NUMBERS, NUMBERS, st.floats(0, 99)))
)
def test_the_order_of_candidates_and_ranks_does_not_change_their_signals(candidates: list[Spanned]) -> None:
    ranks = [one.rank_score for one in candidates]
    turned = signals_of(candidates[::-1], Ranks(ranks[::-1], 9), "who was it?")
    assert signals_of(candidates, Ranks(ranks, 9), "who was it?") == turned[::-1]


def test_the_gap_is_to_the_best_candidate_with_other_words() -> None:
    found = [Spanned("Ada", 9, 0, 5), Spanned("the Ada.", 8, 0, 5), Spanned("Bob", 6, 0, 5), Spanned("Eve", 1, 0, 5)]
    assert [one.gap for one in signals_of(found, Ranks([5.0], 9), "who?")] == [3, 2, -3, -8]


def test_the_first_candidates_alone_have_the_signals_that_they_have_among_all() -> None:
    found = [Spanned("Ada", 9, 0, 5), Spanned("Bob", 6, 0, 5), Spanned("Eve", 8, 0, 5)]
    assert signals_of(found, Ranks([5.0], 9), "who?", 2) == signals_of(found, Ranks([5.0], 9), "who?")[:2]


def test_the_fall_is_from_the_best_passage_to_the_second() -> None:
    (only,) = signals_of([Spanned("Ada", 1, 0, 20)], Ranks([15.0, 20.0, 3.0], 9), "who?")
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
        st.builds(SpanWeights, NUMBERS, NUMBERS, NUMBERS),
        st.builds(AnswerWeights, NUMBERS, NUMBERS, NUMBERS, NUMBERS, NUMBERS, NUMBERS),
        st.builds(Lines, NUMBERS, NUMBERS, NUMBERS),
        NUMBERS,
        st.builds(EvidenceWeights, NUMBERS, NUMBERS, NUMBERS, NUMBERS),
    )
)
def test_a_scoring_comes_back_from_a_label(scoring: Scoring) -> None:
    assert Scoring.of_label(scoring.on_label("reader@0123456789abcdef")) == scoring


@pytest.mark.parametrize("label", ["", "v1", "a=b", "scoring={", "scoring=[]", "scoring={}",
                                   'scoring={"version":3}', 'scoring={"version":2,"span":{}}'])  # fmt: skip
def test_a_label_without_a_whole_scoring_has_none(label: str) -> None:
    assert Scoring.of_label(label) is None


def test_a_reader_of_before_there_were_some_weights_has_the_defaults() -> None:
    record = {**shipped_scoring().record(), "version": 3}
    for name in ("evidence", "sentences", "sentences_below"):
        del record[name]
    del record["answer"]["rank"]
    parsed = Scoring.parse(record)
    assert (parsed.evidence, parsed.sentences, parsed.answer.rank) == (EvidenceWeights(), SENTENCES, 0.0)


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"bias": "high"}', '{"slope": 1}'])
def test_a_broken_scoring_file_is_a_bad_model(tmp_path: Path, content: str) -> None:
    (tmp_path / SCORING_FILE).write_text(content)
    with pytest.raises(BadModel, match=SCORING_FILE):
        Scoring.load(tmp_path)


def question(number: int, margin: float, *, answerable: bool, right: bool) -> dict[str, Any]:
    return {
        "id": f"q{number}",
        "question": "Who?",
        "answers": ["Ada"] if answerable else [],
        "candidates": [
            {"text": "Ada" if right else "Bob", "span_logit": margin, "null_logit": 0.0, "rank_score": 10.0},
            {"text": "Eve", "span_logit": margin - 8, "null_logit": 0.0, "rank_score": 5.0},
        ],
    }


def written(tmp_path: Path, *records: dict[str, Any]) -> Path:
    path = tmp_path / "candidates.jsonl"
    path.write_text("\n".join(json.dumps(record) for record in records))
    return path


@pytest.fixture
def questions(tmp_path: Path) -> list[calibrate.CalibrationQuestion]:
    """Answerable questions have margins about 4 and are right, unanswerable ones about -4, with some overlap."""
    dice = random.Random(5)
    records = [question(n, dice.gauss(4, 3), answerable=True, right=True) for n in range(300)]
    records += [question(n, dice.gauss(-4, 3), answerable=False, right=False) for n in range(100)]
    return calibrate.read_candidates(written(tmp_path, *records))


def test_fitting_tells_apart_what_the_margin_tells_apart(questions: list[calibrate.CalibrationQuestion]) -> None:
    found = calibrate.outcome(calibrate.fit(questions), questions)
    assert found.kept > 80
    assert found.tricks_refused is not None
    assert found.tricks_refused > 80


@pytest.mark.parametrize(("when", "right", "refused"), [("unsure", 97, 0), ("balanced", 80, 80), ("sure", 0, 95)])
def test_each_line_keeps_its_trade(
    questions: list[calibrate.CalibrationQuestion], when: AnswerWhen, right: int, refused: int
) -> None:
    absent = [replace(one, kind="absent") if one.kind == "trick" else one for one in questions]
    found = calibrate.outcome(calibrate.fit(absent), absent, when)
    assert found.kept >= right
    assert found.refused >= refused


def test_fitting_leaves_the_spans_model_alone_where_asked_to(questions: list[calibrate.CalibrationQuestion]) -> None:
    found = calibrate.fit(questions, SCORING)
    assert (found.span, found.no_answer_below) == (SCORING.span, SCORING.no_answer_below)
    assert found.answer != SCORING.answer


def test_a_domain_is_reported_on_by_a_fit_without_it(questions: list[calibrate.CalibrationQuestion]) -> None:
    turned = [replace(one, domain="other", right=~one.right & one.answerable) for one in questions]
    of_other = list(calibrate.left_out([*questions, *turned]))[1]
    assert of_other.domain == "other"
    assert of_other.calibration_error > 0.3


def test_an_answer_in_sentences_is_scored_by_the_best_of_all_passages(tmp_path: Path) -> None:
    def passage(logit: float, text: str) -> dict[str, Any]:
        places = [[0, len(text), logit], [len(text) - 1, len(text), 99.0]]  # the second is a full stop alone
        return {"text": text, "null_logit": 0.0, "rank_score": 9.0, "sentences": places}

    dice = random.Random(5)
    records = [
        {**question(n, 0.0, answerable=n % 2 == 0, right=False), "ranks": [9.0],
         "passages": [passage(dice.gauss(3 if n % 2 == 0 else -3, 2), "Ada built it."), passage(-20.0, "Bob did.")]}
        for n in range(200)
    ]  # fmt: skip
    questions = calibrate.read_sentences(written(tmp_path, *records))
    assert [one.found[0].text for one in questions[:2]] == ["Ada built it."] * 2
    assert [bool(one.right.all()) for one in questions[:2]] == [True, False]
    fitted = calibrate.fit_sentences(questions, SCORING)
    assert replace(fitted, sentences=SCORING.sentences, sentences_below=SCORING.sentences_below) == SCORING
    assert fitted.sentences.margin > 0


def test_a_sentence_is_right_that_holds_an_answer_or_is_part_of_one() -> None:
    assert calibrate.holds("It opened in 1871.", ["1871"])
    assert calibrate.holds("It opened.", ["The mill burnt. It opened. It closed."])
    assert not calibrate.holds("It opened in 1871.", ["187"])


def test_words_out_of_a_long_reference_are_right() -> None:
    clause = "We keep what you told us for as long as you have an account."
    assert calibrate.is_right("as long as you have an account", [clause])
    assert not calibrate.is_right("account", [clause])
    assert not calibrate.is_right("two words", ["in two other words"])


@pytest.mark.parametrize(
    ("right", "wrong", "expected"), [([3, 4], [1, 2], 1.0), ([1, 2], [1, 2], 0.5), ([], [1], None)]
)
def test_auroc_is_the_chance_that_right_scores_above_wrong(
    right: list[float], wrong: list[float], expected: float | None
) -> None:
    marks = np.array([True] * len(right) + [False] * len(wrong))
    assert calibrate.auroc(np.array(right + wrong, dtype=float), marks) == expected


def test_fitting_learns_that_margin_counts_for_a_candidate(questions: list[calibrate.CalibrationQuestion]) -> None:
    assert calibrate.fit(questions).answer.margin > 0


def test_a_threshold_of_one_refuses_everything(questions: list[calibrate.CalibrationQuestion]) -> None:
    found = calibrate.outcome(replace(calibrate.fit(questions), below=Lines(1, 1, 1)), questions)
    assert (found.kept, found.tricks_refused) == (0, 100)


def test_a_question_without_candidates_counts_as_refused(tmp_path: Path) -> None:
    empty = {"id": "q", "question": "Who?", "answers": [], "candidates": []}
    found = calibrate.outcome(SCORING, calibrate.read_candidates(written(tmp_path, empty)))
    assert found.tricks_refused == 100


def test_questions_of_one_kind_alone_are_not_enough(tmp_path: Path) -> None:
    path = written(tmp_path, question(1, 4, answerable=True, right=True))
    with pytest.raises(BadData, match=r"1 of 1 questions are answerable.* SQuAD 2\.0"):
        calibrate.fit(calibrate.read_candidates(path))


@pytest.mark.parametrize("line", ["{", "{}", '{"answers": [], "candidates": [{"text": "x"}]}', "[]"])
def test_a_broken_line_of_candidates_is_named(tmp_path: Path, line: str) -> None:
    path = tmp_path / "candidates.jsonl"
    path.write_text(f"{json.dumps(question(1, 4, answerable=True, right=True))}\n{line}\n")
    with pytest.raises(BadData, match="line 2"):
        calibrate.read_candidates(path)
