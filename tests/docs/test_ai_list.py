"""docs/ai.md says for each command and option of AI.* what it is; the tests that hold the row exist."""

import re
from pathlib import Path

import pytest

from tests.docs.test_gears_list import names
from tests.docs.test_named import redis_commands

ROOT = Path(__file__).parents[2]
TESTS = ROOT / "tests"
PAGE = (ROOT / "docs" / "ai.md").read_text()
KIND = re.compile(r"(same|extended|refused|without effect)\b")
TEST = re.compile(r"`([\w./]+\.py)::(test_\w+)`")

OPTIONS = (re.compile(r'arguments_next_is\(a, "([A-Z]+)"\)'), re.compile(r'^    \{"([A-Z_]+)", offs', re.MULTILINE))


def rows() -> list[list[str]]:
    """The cells of every row of the lists."""
    found: list[list[str]] = []
    for block in re.findall(r"(?:^\|.*\n)+", PAGE, re.MULTILINE):
        lines = [[cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip()[1:-1])] for line in block.splitlines()]
        assert lines[0][-1] == "test"
        found += lines[2:]
    return found


@pytest.mark.parametrize("row", rows(), ids=lambda row: row[0][:60])
def test_a_row_says_what_it_is_and_names_tests_that_exist(row: list[str]) -> None:
    kind = KIND.match(row[1])
    assert kind
    assert kind[1] in ("same", "extended") or kind.end() < len(row[1]), "what is refused needs a word on it"
    found = TEST.findall(row[2])
    assert found
    assert TEST.sub("", row[2]).strip(" ,") == ""
    for file, name in found:
        assert (TESTS / file).is_file(), file
        assert name in names(TESTS / file), f"{file} has no {name}"


def test_every_command_and_argument_of_the_module_has_a_row() -> None:
    listed = "\n".join(row[0] for row in rows())
    source = "\n".join((ROOT / "module" / "src" / name).read_text() for name in ("model_commands.c", "config.c"))
    options = {name for option in OPTIONS for name in option.findall(source)}
    words = options | {name.removeprefix("AI.") for name in redis_commands() if name.startswith("AI.")}
    assert len(words) > 35
    assert not {word for word in words if not re.search(rf"\b{word}\b", listed)}
