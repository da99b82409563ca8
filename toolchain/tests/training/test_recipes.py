"""The recipes that are shipped can be read, and name data that training may use."""

from pathlib import Path

import pytest

from shardqa_toolchain.training.recipe import Recipe

RECIPES = sorted((Path(__file__).parents[2] / "recipes").glob("*.toml"))


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.stem)
def test_a_shipped_recipe_holds_settings_that_training_takes(path: Path) -> None:
    recipe = Recipe.read(path)
    assert recipe.schedule.checked()
    assert recipe.data.checked()


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.stem)
def test_no_shipped_recipe_learns_from_what_measures(path: Path) -> None:
    assert not [name for name in Recipe.read(path).data.train if "dev" in Path(name).name]
