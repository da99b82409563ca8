"""`shardqa-models train multitask` as a person runs it."""

import json
from pathlib import Path

import pytest

from shardqa.errors import BadData
from toolchain.tests import tiny_tasks
from toolchain.tests.tiny import command


def test_the_command_trains_and_prints_every_tasks_scores(tmp_path: Path) -> None:
    recipe = tiny_tasks.write_recipe(tmp_path)
    result = command("train", "multitask", "--recipe", recipe, "--out", tmp_path / "out")
    assert "float32\tplaces\t2\tentity F1\t" in result.stdout or "float32\tplaces\t2\tword accuracy\t" in result.stdout
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"checkpoint", "float32", "int8"}
    assert (tmp_path / "out" / "checkpoint" / "training.png").exists()


def test_faulty_lines_are_refused_or_left_out_by_choice(tmp_path: Path) -> None:
    recipe = tiny_tasks.write_recipe(tmp_path)
    with (tmp_path / "topic.jsonl").open("a") as file:
        file.write('{"text": "no label"}\n')
    words = ("train", "multitask", "--recipe", recipe, "--out", tmp_path / "out", "--json")
    with pytest.raises(BadData, match=r"topic\.jsonl, line 3"):
        command(*words)
    report = json.loads(command(*words, "--skip-faulty").stdout)
    assert report["examples"]["topic"] == 2
    assert len(report["faults"]) == 2
