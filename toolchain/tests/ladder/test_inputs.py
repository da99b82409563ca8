"""Questions that the ladder's steps answer: always the same ones, in each process."""

from pathlib import Path

import pytest

from shardqa.errors import BadData
from shardqa_toolchain.conversion import probes
from shardqa_toolchain.ladder import inputs
from toolchain.tests import tiny


def test_the_same_questions_are_drawn_each_time_and_reach_the_processes(tmp_path: Path) -> None:
    file = tiny.question_set(tmp_path / "set.json")
    assert inputs.draw(file, 2) == inputs.draw(file, 2)
    assert inputs.draw(None, 5) == inputs.draw(None, 5)
    answerable, all_of_them = (inputs.draw(file, 9, unanswerable=unanswerable) for unanswerable in (False, True))
    assert {drawn.question.id for drawn in answerable} == {"r1", "r2", "l1"}
    assert {drawn.question.id for drawn in all_of_them} == {"r1", "r2", "r3", "l1"}
    inputs.save(all_of_them, tmp_path / "inputs.json")
    assert inputs.load(tmp_path / "inputs.json") == all_of_them


def test_a_file_without_paragraphs_is_refused(tmp_path: Path) -> None:
    tiny.write_squad(tmp_path / "set.json", {})
    with pytest.raises(BadData, match=r"set\.json has no question with its paragraph; name a SQuAD file"):
        inputs.draw(tmp_path / "set.json", 4)


def test_without_seeds_a_file_is_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probes, "SEEDS", tmp_path / "absent")
    with pytest.raises(BadData, match=r"absent is not here.*--questions FILE"):
        inputs.draw(None, 4)


def test_rows_are_as_long_as_they_are_or_exactly_as_wanted() -> None:
    drawn = inputs.draw(None, 4)
    own = [len(row) for one in inputs.readings(drawn, tiny.TOKENIZER, 384) for _, row in one.windows]
    assert len(set(own)) > 1
    cut = [len(row) for one in inputs.readings(drawn, tiny.TOKENIZER, 40, exact=True) for _, row in one.windows]
    assert cut == [40] * 4
