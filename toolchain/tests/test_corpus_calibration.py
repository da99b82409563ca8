"""Scores fitted to one corpus, and what is said about their gain."""

import random
from dataclasses import astuple, replace

import pytest

from shardqa.errors import BadData
from shardqa.models.corpus_scoring import CorpusScoring, FittedOn, digest
from shardqa.models.scoring import Scoring, shipped_scoring
from shardqa_toolchain import corpus_calibration as fitting
from shardqa_toolchain.calibrate import CalibrationQuestion, ReadCandidate
from shardqa_toolchain.corpus_reading import ReadPassage
from shardqa_toolchain.squad import SquadQuestion

READERS = shipped_scoring()
FITTED = FittedOn(
    at="2026-01-01T00:00:00+00:00", answerable=30, absent=30, tricks=0, log_loss_before=1, log_loss_after=0.5
)


def question(number: int = 0, answers: tuple[str, ...] = ("1742",), document: str | None = "mill") -> SquadQuestion:
    return SquadQuestion(str(number), f"When was mill {number} built?", answers, document)


def passage(document: str, rank: float, *spans: tuple[str, float]) -> ReadPassage:
    return ReadPassage(document, rank, tuple(ReadCandidate(text, margin, 0.0, rank) for text, margin in spans))


def corpus(count: int, surer_by: float) -> list[CalibrationQuestion]:
    """Questions whose right answers lie `surer_by` logits above the wrong ones, as no reader's scores expect."""
    chance, asked = random.Random(7), list[CalibrationQuestion]()
    for number in range(count):
        right = passage("mill", 10, ("1742", chance.gauss(surer_by, 1)))
        wrong = passage("kiln", 9, ("by monks", chance.gauss(-6, 1)))
        asked += fitting.asked_of(question(number), [right, wrong, passage("forge", 8)], 2, 9)
    return asked


def test_a_question_is_asked_again_without_the_documents_that_answer_it() -> None:
    found = [passage("mill", 9, ("1742", 5)), passage("copy", 8, ("1742", 4)), passage("kiln", 7, ("monks", 1))]
    answerable, absent = fitting.asked_of(question(), found, 2, 9)
    assert (answerable.kind, [one.text for one in answerable.found], list(answerable.right)) == (
        "answerable", ["1742", "1742"], [True, True],
    )  # fmt: skip
    assert (absent.kind, [one.text for one in absent.found], list(absent.right)) == ("absent", ["monks"], [False])


def test_a_question_without_answers_is_asked_once() -> None:
    (absent,) = fitting.asked_of(question(answers=(), document=None), [passage("mill", 9, ("1742", 5))], 2, 9)
    (trick,) = fitting.asked_of(question(answers=()), [passage("mill", 9, ("1742", 5))], 2, 9)
    assert (absent.kind, trick.kind) == ("absent", "trick")


def test_twenty_nine_questions_are_too_few() -> None:
    with pytest.raises(BadData, match="29 questions with an answer are too few, 30 are needed"):
        fitting.check_enough([*(question(n) for n in range(29)), question(29, answers=())])


def test_a_corpus_that_the_reader_is_too_unsure_of_gains() -> None:
    asked = corpus(60, surer_by=-8.0)
    gain = fitting.gain(asked, READERS, READERS)
    assert gain.log_loss_after < gain.log_loss_before
    assert gain.after.kept > gain.before.kept
    assert gain.after.calibration_error < gain.before.calibration_error


@pytest.mark.parametrize("surer_by", [-30.0, 0.0, 30.0])
def test_a_corpus_far_from_the_readers_gains_too(surer_by: float) -> None:
    """Newton's method alone runs away there, and the more questions the farther."""
    asked = corpus(120, surer_by)
    gain = fitting.gain(asked, READERS, READERS)
    assert gain.log_loss_after < gain.log_loss_before
    assert all(abs(weight) < 30 for weight in astuple(fitting.fit(asked, READERS).answer))


def test_what_was_fitted_before_is_what_a_new_fit_is_compared_with() -> None:
    asked = corpus(60, surer_by=-8.0)
    fitted = fitting.fit(asked, READERS)
    assert fitting.gain(asked, READERS, fitted).log_loss_before < fitting.gain(asked, READERS, READERS).log_loss_before


def test_few_questions_move_the_weights_less_than_many() -> None:
    few, many = (fitting.fit(corpus(count, surer_by=-3.0), READERS) for count in (30, 300))
    assert abs(few.answer.bias - READERS.answer.bias) < abs(many.answer.bias - READERS.answer.bias)


def test_the_order_of_spans_stays_the_readers() -> None:
    fitted = fitting.fit(corpus(30, surer_by=-3.0), READERS)
    assert (fitted.span, fitted.no_answer_below) == (READERS.span, READERS.no_answer_below)


def other_reader() -> Scoring:
    return replace(READERS, no_answer_below=0.5)


def test_scores_of_a_corpus_count_over_the_reader_that_they_were_fitted_to_alone() -> None:
    fitted = fitting.fit(corpus(30, surer_by=-3.0), READERS)
    own = CorpusScoring.of(fitted, READERS, FITTED)
    assert own.over(READERS) == fitted
    assert own.over(other_reader()) == other_reader()
    assert digest(READERS) != digest(other_reader())


def test_scores_of_a_corpus_are_read_as_they_were_written() -> None:
    own = CorpusScoring.of(fitting.fit(corpus(30, surer_by=-3.0), READERS), READERS, FITTED)
    assert CorpusScoring.parsed(own.model_dump_json()) == own


@pytest.mark.parametrize("value", ["", "{}", '{"version": 9}', "null", '{"version": 1, "reader": "x", "answer": {}}'])
def test_what_is_no_scoring_of_ours_is_none(value: str) -> None:
    assert CorpusScoring.parsed(value) is None


def test_a_weight_that_is_missing_or_unknown_makes_it_none() -> None:
    own = CorpusScoring.of(READERS, READERS, FITTED)
    less = own.model_copy(update={"answer": {"bias": 1.0}})
    more = own.model_copy(update={"answer": {**own.answer, "mood": 1.0}})
    assert CorpusScoring.parsed(less.model_dump_json()) is None
    assert CorpusScoring.parsed(more.model_dump_json()) is None


def test_other_weights_have_another_name() -> None:
    own = CorpusScoring.of(READERS, READERS, FITTED)
    moved = own.model_copy(update={"below": {**own.below, "balanced": 0.33}})
    assert CorpusScoring.of(READERS, READERS, FITTED).name == own.name != CorpusScoring(**moved.model_dump()).name


@pytest.mark.parametrize(
    ("share", "log_loss", "is_worth_it"), [(90.0, 0.4, True), (89.0, 0.4, False), (95.0, 0.6, False)]
)
def test_scores_that_keep_fewer_right_answers_are_not_worth_it(
    share: float, log_loss: float, is_worth_it: bool
) -> None:
    before = fitting.gain(corpus(60, 0.0), READERS, READERS).before
    gain = fitting.Gain(replace(before, kept=90.0), replace(before, kept=share), 0.5, log_loss)
    assert gain.is_worth_it == is_worth_it
