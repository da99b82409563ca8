"""Fitting the scores from candidates made up for it."""

import json
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from shardqa.answer_lines import AnswerWhen, Lines
from shardqa.errors import BadData
from shardqa.models.scoring import EvidenceWeights, Scoring, shipped_scoring
from shardqa_toolchain import calibrate

SCORING = shipped_scoring()


def made_up(number: int, domain: str, kind: str, rival_rank: float) -> dict[str, object]:
    """The right passage ranks 10; a rival says something else in a better worded sentence, now and then."""
    noise = random.Random(f"{domain} {kind} {number}")
    own = {"text": "right", "span_logit": noise.gauss(5, 1), "null_logit": 0.0, "rank_score": 10.0}
    rival = {"text": "other", "span_logit": noise.gauss(5, 2), "null_logit": 0.0, "rank_score": rival_rank}
    return {
        "id": f"{number}",
        "domain": domain,
        "kind": kind,
        "question": "where is it said",
        "answers": ["right"] if kind == "answerable" else [],
        "ranks": [10.0, rival_rank],
        "candidates": [own, rival] if kind == "answerable" else [rival | {"rank_score": 10.0}, rival],
    }


def fitted(*records: dict[str, object]) -> Scoring:
    return calibrate.fit([calibrate._question(record, "none") for record in records])


def test_domains_without_trick_questions_teach_the_order_as_well() -> None:
    tricky = [made_up(n, "tricky", kind, 9.0) for n in range(60) for kind in ("answerable", "trick")]
    other = [made_up(n, "other", kind, 2.0) for n in range(60) for kind in ("answerable", "absent")]
    alone, both = fitted(*tricky).span, fitted(*tricky, *other).span
    assert both.lag < 0
    assert abs(both.lag / both.margin - alone.lag / alone.margin) > 0.5


def test_the_shipped_reader_believes_the_passage_with_the_name_before_a_better_sentence_of_another() -> None:
    """Four logits do not make up for half of the rank: a row of a table is read worse than a plain sentence."""
    scoring = shipped_scoring()
    of_table, of_sentence = scoring.score(4.0, 0.0, 12.0, 12.0), scoring.score(8.0, 0.0, 6.5, 12.0)
    assert of_table > of_sentence


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


def test_a_twin_is_refused_by_the_name_that_its_passage_lacks() -> None:
    def asked(number: int, name: str, answers: list[str]) -> dict[str, Any]:
        said = "Ada built the Alma."
        passage = {"key": "p", "above": "Boats", "text": said, "null_logit": 0.0, "rank_score": 9.0, "sentences": []}
        one = {"text": "Ada", "said": said, "passage": "p", "span_logit": 4.0, "null_logit": 0.0, "rank_score": 9.0}
        kind = "answerable" if answers else "twin"
        of = {"id": f"{number}", "kind": kind, "question": f"Who built the {name}?", "answers": answers}
        return {**of, "candidates": [one], "passages": [passage]}

    records = [asked(n, *(("Alma", ["Ada"]) if n % 2 else ("Berta", []))) for n in range(100)]
    questions = [calibrate._question(record, "boats") for record in records]
    found = calibrate.outcome(calibrate.fit(questions, SCORING), questions)
    assert (found.kept, found.twins_refused) == (100, 100)


def test_a_domain_weighs_what_others_do_whatever_styles_it_has(questions: list[calibrate.CalibrationQuestion]) -> None:
    other = [replace(one, domain="other", style="aloud") for one in questions[:50] + questions[-20:]]
    weights = calibrate.shares([*questions, *other])
    assert weights[: len(questions)].sum() == pytest.approx(weights[len(questions) :].sum())


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
    questions = calibrate.read_sentences(written(tmp_path, *records), EvidenceWeights())
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
