"""`shardqa-models train multitask` as a person runs it."""

import json
from pathlib import Path

from typer.testing import CliRunner

from shardqa.errors import BadData
from shardqa_toolchain.cli import app
from toolchain.tests import tiny_tasks

COMMAND = ["train", "multitask"]


def test_the_command_trains_and_prints_every_tasks_scores(tmp_path: Path) -> None:
    recipe = tiny_tasks.write_recipe(tmp_path)
    found = CliRunner().invoke(app, [*COMMAND, "--recipe", str(recipe), "--out", str(tmp_path / "out")])
    assert found.exit_code == 0, found.output
    assert "float32\tplaces\t2\tentity F1\t" in found.stdout or "float32\tplaces\t2\tword accuracy\t" in found.stdout
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"checkpoint", "float32", "int8"}
    assert (tmp_path / "out" / "checkpoint" / "training.png").exists()


def test_faulty_lines_are_refused_or_left_out_by_choice(tmp_path: Path) -> None:
    recipe = tiny_tasks.write_recipe(tmp_path)
    with (tmp_path / "topic.jsonl").open("a") as file:
        file.write('{"text": "no label"}\n')
    command = [*COMMAND, "--recipe", str(recipe), "--out", str(tmp_path / "out"), "--json"]
    refused = CliRunner().invoke(app, command)
    assert isinstance(refused.exception, BadData)
    assert "topic.jsonl, line 3" in str(refused.exception)
    taken = CliRunner().invoke(app, [*command, "--skip-faulty"])
    assert taken.exit_code == 0, taken.output
    report = json.loads(taken.stdout)
    assert report["examples"]["topic"] == 2
    assert len(report["faults"]) == 2


def test_a_folder_that_is_there_already_is_left_alone(tmp_path: Path) -> None:
    recipe = tiny_tasks.write_recipe(tmp_path)
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine").touch()
    found = CliRunner().invoke(app, [*COMMAND, "--recipe", str(recipe), "--out", str(tmp_path / "out")])
    assert isinstance(found.exception, BadData)
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["mine"]
