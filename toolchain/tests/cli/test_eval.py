"""Shares of questions that are answered right, and two readers compared."""

from pathlib import Path

import pytest

from shardqa.errors import BadData
from shardqa_toolchain.cli import eval
from shardqa_toolchain.cli.times import percentile
from shardqa_toolchain.squad import SquadQuestion


def test_an_eval_counts_refusals_and_forced_answers_apart() -> None:
    right = eval.QuestionOutcome(SquadQuestion("1", "?", ("a mill",), "d"), "mill", "mill", 0.9)
    shy = eval.QuestionOutcome(SquadQuestion("2", "?", ("a weir",), "d"), "", "the weir", 0.1)
    refused = eval.QuestionOutcome(SquadQuestion("3", "?", (), None), "", "x", 0.1)
    fooled = eval.QuestionOutcome(SquadQuestion("4", "?", (), None), "x", "x", 0.9)
    row = eval.summed([right, shy, refused, fooled], "f", "c", 5, 1.0)
    assert (row.em_forced, row.em, row.right, row.answered, row.refused) == (100.0, 50.0, 50.0, 50.0, 50.0)


def test_two_readers_are_compared_on_the_same_questions(tmp_path: Path) -> None:
    questions = [SquadQuestion(str(n), "?", ("a mill",), "d") for n in range(50)]
    right, wrong = ([eval.QuestionOutcome(one, text, text, 0.9) for one in questions] for text in ("mill", "weir"))
    eval._write(tmp_path / "wrong.jsonl", wrong)
    row = eval.summed(right, "f", "c", 5, 1.0, eval._read(tmp_path / "wrong.jsonl"))
    assert row.f1_over == "+100.0 (+100.0 to +100.0)"
    with pytest.raises(BadData, match="other questions"):
        eval.summed(right, "f", "c", 5, 1.0, {"7": "mill"})


def test_a_percentile_is_the_least_value_that_covers_its_share() -> None:
    assert [percentile(range(1, 101), share) for share in (0.5, 0.9, 0.99, 1.0)] == [50, 90, 99, 100]
    assert percentile([7.0], 0.5) == 7.0


def test_a_limited_number_of_questions_spreads_over_the_file() -> None:
    questions = [SquadQuestion(str(i), "?", (), None) for i in range(10)]
    assert [q.id for q in eval.spread(questions, 3)] == ["0", "3", "6"]
    assert eval.spread(questions, 99) == questions


def test_runs_and_right_documents_are_written_as_trec_has_them(tmp_path: Path) -> None:
    questions = [SquadQuestion("q1", "Who?", ("Ada",), "a mill"), SquadQuestion("q2", "When?", ("1871",), "weir")]
    eval.write_trec(tmp_path / "trec", questions, [{"weir": 2.5, "a mill": 1.25}, {}])
    assert (
        tmp_path / "trec" / "run.txt"
    ).read_text() == "q1 Q0 weir 1 2.500000 shardqa\nq1 Q0 a%20mill 2 1.250000 shardqa\n"
    assert (tmp_path / "trec" / "qrels.txt").read_text() == "q1 0 a%20mill 1\nq2 0 weir 1\n"


def test_scores_that_part_right_from_wrong_have_an_area_of_one_and_slices_go_by_first_words() -> None:
    who = SquadQuestion("1", "Who built it?", ("Ada",), "d")
    when = SquadQuestion("2", "When was it built?", (), None)
    outcomes = [eval.QuestionOutcome(who, "Ada", "Ada", 0.9)] * 2 + [eval.QuestionOutcome(when, "", "1871", 0.2)]
    row = eval.summed(outcomes, "f", "c", 5, 1.0)
    assert (row.auc, row.slices) == (1.0, {"who": "2: 100.0", "when": "1: 100.0"})
    shy = [*outcomes, eval.QuestionOutcome(who, "", "Ada", 0.2), eval.QuestionOutcome(when, "x", "x", 0.95)]
    assert eval.summed(shy, "f", "c", 5, 1.0).auc == 0.4167
