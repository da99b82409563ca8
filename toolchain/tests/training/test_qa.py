"""Fine-tuning from files to a checkpoint folder, by the Python API and by the command."""

import json
from pathlib import Path

import pytest

from shardqa.errors import BadData, BadModel
from shardqa_toolchain import cards
from shardqa_toolchain.conversion.checkpoint import Checkpoint
from shardqa_toolchain.training import qa
from shardqa_toolchain.training.loop import Schedule
from shardqa_toolchain.training.recipe import Data, Recipe
from toolchain.tests import tiny


def recipe(folder: Path, passes: float = 40, **data: object) -> Recipe:
    start = tiny.checkpoint(folder / "start")
    train = tiny.question_set(folder / "train.json")
    settings = {"train": (str(train),), "held_out": 0.0, "negatives": 1.0, **data}
    return Recipe(str(start), Data(**settings), Schedule(passes=passes, tokens=512, rate=0.01))  # type: ignore[arg-type]


def test_a_tiny_reader_learns_its_questions(tmp_path: Path) -> None:
    report = qa.train(recipe(tmp_path), tmp_path / "out", tmp_path / "work")
    first = json.loads((tmp_path / "work/log.jsonl").read_text().splitlines()[0])
    assert report.loss < 0.3 * first["loss"]


def test_the_same_recipe_makes_the_same_bits_with_a_card(tmp_path: Path) -> None:
    for name in ("one", "two"):
        qa.train(recipe(tmp_path, passes=2), tmp_path / name, tmp_path / f"{name}.work")
    assert cards.address(tmp_path / "one") == cards.address(tmp_path / "two")
    assert Checkpoint.load(tmp_path / "one").config["architectures"] == ["BertForQuestionAnswering"]
    assert cards.Card.load(tmp_path / "one").steps[-1].name == "train qa"


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
    out = tmp_path / "out"
    result = tiny.command("train", "qa", "--recipe", path, "--start", settings.start, "--out", out, "--json")
    assert json.loads(result.stdout)["questions"] == 4
    with pytest.raises(BadData, match="no checkpoint to start from"):
        tiny.command("train", "qa", "--out", tmp_path / "o")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("passes = 2", "'passes' is unknown"),
        ("[schedule]\npasses = 'two'", "passes is 'two', float is needed"),
        ("[data]\nheld_out = 2.0\ntrain = ['x']", "held_out is 2.0"),
        ("= 3", "is not a recipe"),
        ("[schedule]\ntokens = true", "tokens is True, int is needed"),
    ],
)
def test_a_recipe_with_a_wrong_setting_names_it(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "recipe.toml"
    path.write_text(text)
    with pytest.raises(BadData, match=message):
        Recipe.read(path).data.checked()
