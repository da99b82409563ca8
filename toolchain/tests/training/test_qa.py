"""Fine-tuning from files to a checkpoint folder, by the Python API and by the command."""

import errno
import json
import os
from pathlib import Path

import pytest
from typer.testing import CliRunner

from shardqa.errors import BadData, BadModel, SetupError
from shardqa.models import cards
from shardqa_toolchain import folders
from shardqa_toolchain.cli import app
from shardqa_toolchain.conversion.checkpoint import Checkpoint
from shardqa_toolchain.training import qa
from shardqa_toolchain.training.loop import Schedule
from shardqa_toolchain.training.recipe import Data, Recipe
from toolchain.tests import tiny


def recipe(folder: Path, passes: float = 40, **data: object) -> Recipe:
    start = tiny.checkpoint(folder / "start")
    train = tiny.question_set(folder / "train.json")
    settings = {"train": (str(train),), "held_out": 0.0, "negatives": 1.0, **data}
    return Recipe(str(start), 0.0, Data(**settings), Schedule(passes=passes, tokens=512, rate=0.01))  # type: ignore[arg-type]


def test_a_tiny_reader_learns_its_questions(tmp_path: Path) -> None:
    report = qa.train(recipe(tmp_path), tmp_path / "out", tmp_path / "work")
    first = json.loads((tmp_path / "work/log.jsonl").read_text().splitlines()[0])
    assert report.loss < 0.3 * first["loss"]


def test_what_it_writes_is_a_checkpoint_with_card_and_picture(tmp_path: Path) -> None:
    qa.train(recipe(tmp_path, passes=1), tmp_path / "out", tmp_path / "work")
    assert Checkpoint.load(tmp_path / "out").config["architectures"] == ["BertForQuestionAnswering"]
    assert (tmp_path / "out/training.png").read_bytes().startswith(b"\x89PNG")
    assert cards.Card.load(tmp_path / "out").steps[-1].name == "train qa"


def test_the_same_recipe_makes_the_same_bits(tmp_path: Path) -> None:
    qa.train(recipe(tmp_path, passes=2), tmp_path / "one", tmp_path / "work1")
    qa.train(recipe(tmp_path, passes=2), tmp_path / "two", tmp_path / "work2")
    assert cards.address(tmp_path / "one") == cards.address(tmp_path / "two")


def test_it_does_not_write_over_a_folder_that_is_there(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out/precious").write_text("")
    with pytest.raises(BadData, match="is there already"):
        qa.train(recipe(tmp_path, passes=1), tmp_path / "out", tmp_path / "work")


def test_a_start_that_is_no_checkpoint_is_refused_and_leaves_nothing(tmp_path: Path) -> None:
    settings = recipe(tmp_path, passes=1)
    (tmp_path / "start/config.json").unlink()
    with pytest.raises(BadModel):
        qa.train(settings, tmp_path / "out", tmp_path / "work")
    assert not (tmp_path / "out").exists()


def test_a_full_disk_is_said_and_leaves_nothing_half(tmp_path: Path) -> None:
    def fill(folder: Path) -> None:
        (folder / "begun").write_text("half")
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with (
        pytest.raises(SetupError, match="can't be written: No space left"),
        folders.written_atomically(tmp_path / "out") as folder,
    ):
        fill(folder)
    assert list(tmp_path.iterdir()) == []


def test_other_faults_of_the_disk_stay_what_they_are(tmp_path: Path) -> None:
    with pytest.raises(PermissionError), folders.written_atomically(tmp_path / "out"):
        raise PermissionError(errno.EACCES, "no")


def test_an_interrupted_run_goes_on_from_its_work_folder(tmp_path: Path) -> None:
    settings = recipe(tmp_path, passes=30)

    def stop(progress: object) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        qa.train(settings, tmp_path / "out", tmp_path / "work", stop)
    report = qa.train(settings, tmp_path / "out", tmp_path / "work")
    assert report.steps == json.loads((tmp_path / "work/log.jsonl").read_text().splitlines()[-1])["step"]


def test_the_command_trains_by_a_recipe_and_options_win(tmp_path: Path) -> None:
    settings = recipe(tmp_path)
    path = tmp_path / "recipe.toml"
    path.write_text(f'start = "nowhere"\n[data]\ntrain = ["{settings.data.train[0]}"]\n[schedule]\npasses = 1\n')
    words = ["--recipe", str(path), "--start", settings.start, "--out", str(tmp_path / "out"), "--json"]
    result = CliRunner().invoke(app, ["train", "qa", *words], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["questions"] == 4


def test_the_command_wants_a_start(tmp_path: Path) -> None:
    with pytest.raises(BadData, match="no checkpoint to start from"):
        CliRunner().invoke(app, ["train", "qa", "--out", str(tmp_path / "o")], catch_exceptions=False)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("passes = 2", "'passes' is unknown"),
        ("[schedule]\npasses = 'two'", "passes is 'two', float is needed"),
        ("[data]\nheld_out = 2.0\ntrain = ['x']", "held_out is 2.0"),
        ("= 3", "is not a recipe"),
        ("[schedule]\ntokens = true", "tokens is True, int is needed"),
    ],
)
def test_a_recipe_with_a_wrong_setting_names_it(text: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "recipe.toml"
    path.write_text(text)
    with pytest.raises(BadData, match=said):
        Recipe.read(path).data.checked()
