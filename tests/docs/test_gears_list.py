"""docs/gears.md says for each command, step, argument and function what it is; the test that holds the row exists."""

import ast
import re
from pathlib import Path

import pytest

from shardqa.module.worker.gears.builder import Builder
from shardqa.module.worker.gears.settings import KNOWN
from tests.docs.test_named import redis_commands

ROOT = Path(__file__).parents[2]
COMPAT = ROOT / "tests" / "compat"
PAGE = (ROOT / "docs" / "gears.md").read_text()
HEADS = ("command", "step", "reader and argument", "function")  # of the four lists
NO_STEPS = ("run", "register", "plan_of_run")
TEST = re.compile(r"`([\w./]+\.py)(?:::(test_\w+))?`")


def rows() -> list[list[str]]:
    """The cells of every row of the four lists."""
    found: list[list[str]] = []
    for block in re.findall(r"(?:^\|.*\n)+", PAGE, re.MULTILINE):
        lines = [[cell.strip() for cell in line.strip().strip("|").split(" | ")] for line in block.splitlines()]
        if lines[0][0] in HEADS and lines[0][-1] == "test":
            found += lines[2:]
    return found


def names(path: Path) -> set[str]:
    tree = ast.parse(path.read_text())
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}


@pytest.mark.parametrize("row", rows(), ids=lambda row: row[0][:60])
def test_a_row_says_what_it_is_and_names_a_test_that_exists(row: list[str]) -> None:
    assert row[1] in ("same", "extended", "refused")
    assert row[1] == "same" or row[2], "what is extended or refused needs a word on it"
    tests = TEST.findall(row[-1])
    assert tests
    for file, name in tests:
        path = COMPAT / file
        assert path.is_file(), file
        assert not name or name in names(path), f"{file} has no {name}"


def test_every_command_step_and_setting_has_its_place() -> None:
    listed = "\n".join(row[0] for row in rows())
    steps = [name for name in vars(Builder) if not name.startswith("_") and name not in NO_STEPS]
    commands = [name for name in redis_commands() if name.startswith("RG.") and "._" not in name]
    assert len(steps) > 15
    assert len(commands) > 15
    assert not [name for name in steps if not re.search(rf"`{name}[`(]", listed)]
    assert not [name for name in commands if name not in listed]


def test_the_page_for_those_who_move_has_every_setting_of_redisgears() -> None:
    text = (ROOT / "docs" / "moving-from-redisgears.md").read_text()
    assert not [name for name in KNOWN if f"`{name}`" not in text]
