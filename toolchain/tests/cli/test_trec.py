"""Rankings in TREC's forms, and by ir_measures' measures."""

from pathlib import Path

import pytest

from shardqa.errors import BadData
from shardqa_toolchain.cli.trec import Ranked, measured, write

RANKINGS = [
    Ranked("q 1", "mill", {"weir": 3.0, "mill": 2.5}),
    Ranked("q2", "inn", {"inn": 1.0}),
    Ranked("q3", "inn", {}),
]


def test_a_run_and_qrels_are_what_trecs_programs_read(tmp_path: Path) -> None:
    write(RANKINGS, tmp_path / "run", tmp_path / "qrels")
    assert (tmp_path / "run").read_text().splitlines()[1] == "q_1 Q0 mill 2 2.500000 shardqa"
    assert (tmp_path / "qrels").read_text() == "q_1 0 mill 1\nq2 0 inn 1\nq3 0 inn 1\n"


def test_further_measures_are_those_of_ir_measures() -> None:
    pytest.importorskip("ir_measures")
    assert measured(RANKINGS, "RR R@1") == {"RR": 0.5, "R@1": pytest.approx(1 / 3, abs=1e-3)}
    with pytest.raises(BadData, match="names are as in"):
        measured(RANKINGS, "Nonsense")
