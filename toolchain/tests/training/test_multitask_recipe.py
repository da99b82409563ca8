"""Recipes of several tasks: what they say, and what they may not say."""

from pathlib import Path

import pytest

from shardqa.errors import BadData
from shardqa_toolchain.training.multitask_recipe import MultitaskRecipe

TASK = '[[task]]\nname = "topic"\nkind = "sequence"\ntrain = ["a.jsonl"]\n'
GOOD = f'start = "bert"\n{TASK}'


def read(folder: Path, text: str) -> MultitaskRecipe:
    path = folder / "recipe.toml"
    path.write_text(text)
    return MultitaskRecipe.read(path)


def test_a_recipe_lists_tasks_with_their_data_and_weights(tmp_path: Path) -> None:
    recipe = read(tmp_path, GOOD + "weight = 2\n[schedule]\npasses = 3\n")
    assert (recipe.start, recipe.form, recipe.schedule.passes) == ("bert", "heads", 3.0)
    assert [(task.name, task.train, task.weight) for task in recipe.task] == [("topic", ("a.jsonl",), 2.0)]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[[task", "is not a recipe"),
        ("task = 1", r"tasks are written as \[\[task\]\]"),
        (TASK, "start is ''"),
        ('start = "bert"', r"one \[\[task\]\] or more is needed"),
        (f'form = "both"\n{GOOD}', "form is 'both', one of heads, control is needed"),
        (f"max_row = 100\n{GOOD}", "max_row is 100, 224 to 512"),
        (f"fresh_rate = 0.0\n{GOOD}", "fresh_rate is 0.0, a number above 0"),
        (f"keep = -1.0\n{GOOD}", "keep is -1.0, a number from 0"),
        (f"{GOOD}colour = 1", r"\[task 1\]: 'colour' is unknown"),
        (f"{GOOD}weight = 0", "task 1: weight is 0.0, a number above 0"),
        (f"{GOOD}weight = -1.0", "task 1: weight is -1.0, a number above 0"),
        (f'{GOOD}weight = "much"', "weight is 'much', float is needed"),
        (f"{GOOD}weight = nan", "weight is nan, a number above 0"),
        (f'{GOOD}labels = ["x", "x"]', "each label once"),
        (f'{GOOD}scheme = "io"', "scheme is 'io', one of bio, plain"),
        (f"{GOOD}dev = [1]", "dev is"),
        (GOOD.replace("sequence", "summary"), "kind is 'summary'"),
        (GOOD.replace('["a.jsonl"]', "[]"), "one file or more"),
        (GOOD.replace("topic", "Topic"), "name is 'Topic'"),
        (GOOD.replace("topic", "start"), "name is 'start'"),
        (GOOD + TASK, "the task 'topic' is there 2 times"),
        (GOOD.replace("sequence", "span") + 'labels = ["x"]', "none for this kind"),
        (
            (GOOD + TASK.replace("topic", "other")).replace("sequence", "span"),
            "topic, other are of the kind span, of which one can be",
        ),
    ],
)
def test_a_recipe_that_can_not_be_followed_is_refused(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(BadData, match=message):
        read(tmp_path, text)
