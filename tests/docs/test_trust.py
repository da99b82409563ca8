"""What SECURITY.md and docs/operating.md say: each part has tests in docs/trust.md, and names are those of the code.

Whether a sentence is true is the matter of the tests that are named; here is checked that they are there.
"""

import ast
import re
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import typer.main
import yaml

from shardqa.api.corpus_metrics import SIZES
from shardqa.api.model_metrics import COUNTERS
from shardqa.cli import app as program

ROOT = Path(__file__).parents[2]
TESTS = ROOT / "tests"
TRUST = (ROOT / "docs" / "trust.md").read_text()
OPERATING = (ROOT / "docs" / "operating.md").read_text()
SECURITY = (ROOT / "SECURITY.md").read_text()
NAMED = re.compile(r"`(?:tests/)?((?:\w+/)+(?:test_\w+\.py)?)(?:::(\w+))?`")
SOURCE = ROOT / "module" / "src"
METRIC = re.compile(
    rf"model_({'|'.join(COUNTERS)})(_total)?|model_(largest_batch|(queue|run)_seconds)|"
    rf"corpus_({'|'.join(SIZES)})"
)


def rows(title: str) -> list[list[str]]:
    """The cells of the table below a heading of docs/trust.md, without its head."""
    part = TRUST.partition(f"## {title}\n")[2].partition("\n## ")[0]
    lines = [line for line in part.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines[2:]]


@cache
def functions_of(path: Path) -> set[str]:
    nodes = ast.walk(ast.parse(path.read_text()))
    return {node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}


@pytest.mark.parametrize(
    "page", ["SECURITY.md", "docs/operating.md", "docs/trust.md", "docs/threats.md", "docs/gears.md", "docs/ai.md"]
)
def test_each_test_that_a_page_names_exists(page: str) -> None:
    found = NAMED.findall((ROOT / page).read_text())
    found = [(path, name) for path, name in found if path.endswith(".py") or path == "compose/"]
    assert page in ("docs/gears.md", "docs/ai.md") or found
    missing = [f"{path}::{name}" for path, name in found if not (TESTS / path).exists()]
    missing += [
        f"{path}::{name}"
        for path, name in found
        if name and path not in missing and name not in functions_of(TESTS / path)
    ]
    assert not missing


@pytest.mark.parametrize("page", ["SECURITY.md", "docs/operating.md", "docs/trust.md"])
def test_each_make_target_that_a_page_names_exists(page: str) -> None:
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = set(re.findall(r"`(?:\w+=\S+ )*make ([\w-]+)", (ROOT / page).read_text()))
    assert not named - targets


def test_each_part_of_the_operators_page_has_its_tests() -> None:
    parts = [
        title for title in re.findall(r"^##+ (.*)$", OPERATING, re.MULTILINE) if f"## {title}\n\n##" not in OPERATING
    ]
    table = rows("What operating.md says")
    assert [*dict.fromkeys(row[0] for row in table)] == parts
    assert all(NAMED.search(row[2]) or "not tested:" in row[2] for row in table)


def test_each_promise_of_the_security_page_names_its_tests() -> None:
    promised = SECURITY.partition("## What is promised\n")[2].partition("\n## ")[0].split("\n* ")[1:]
    assert len(promised) > 10
    assert not [
        promise for promise in promised if not NAMED.search(" ".join(promise.split())) and "same files" not in promise
    ]


# ---- names


def load_arguments() -> set[str]:
    code = (SOURCE / "module.c").read_text()
    body = code[code.index("static const char *set_argument") :]
    own = set(re.findall(r'text_is\(name, "(\w+)"\)', body))
    return own | set(re.findall(r'^    \{"([A-Z_]+)", offsetof', (SOURCE / "config.c").read_text(), re.MULTILINE))


def test_each_load_argument_is_documented_and_no_other() -> None:
    documented = set(re.findall(r"^\| `([A-Z_]{4,})(?: [^`]*)?`", OPERATING, re.MULTILINE))
    elsewhere = set(re.findall(r"`([A-Z_]+)", (ROOT / "docs" / "ai.md").read_text() + OPERATING))
    arguments = load_arguments()
    assert len(arguments) > 20
    assert not documented - arguments
    assert not arguments - elsewhere


@pytest.mark.parametrize(
    ("argument", "field"),
    [
        ("THREADS", "threads"),
        ("TIMEOUT", "timeout_ms"),
        ("MAXPENDING", "max_pending"),
        ("HEARTBEAT", "heartbeat_ms"),
        ("BACKOFF", "backoff_ms"),
        ("SLICE", "slice_us"),
    ],
)
def test_each_default_of_a_load_argument_is_that_of_the_code(argument: str, field: str) -> None:
    (set_to,) = re.findall(rf"\.{field} = (\d+)[,}}]", (SOURCE / "module.c").read_text())
    (told,) = re.findall(rf"^\| `{argument}[^`]*` \| (\d+) \|", OPERATING, re.MULTILINE)
    assert told == set_to


def test_each_field_of_info_that_is_named_is_told() -> None:
    code = [*SOURCE.glob("*.c"), *(ROOT / "module" / "worker").rglob("*.py"), *(ROOT / "gears_functions").rglob("*.py")]
    text = "".join(path.read_text() for path in code)
    told = set(re.findall(r'"([a-z]\w+)"', text))
    named = set(re.findall(r"shardqa_([a-z][a-z0-9_]*)", OPERATING + SECURITY))
    named = {re.sub(r"_us_p(50|99)$", "", name) for name in named}  # of a time, by its name
    assert len(named) > 10
    assert not [name for name in named - told if not METRIC.fullmatch(name)]


def command_lines(text: str) -> list[list[str]]:
    """What follows `shardqa` in code, as words; up to where the shell begins again."""
    found = re.findall(r"(?:^    |^\$ |`)shardqa ([a-z][^`\n]*)", text, re.MULTILINE)
    return [re.split(r" [|>&#] ?|$", line)[0].split() for line in found]


@pytest.mark.parametrize("page", ["SECURITY.md", "docs/operating.md"])
def test_each_command_that_a_page_shows_can_be_given(page: str) -> None:
    wrong = []
    for words in command_lines((ROOT / page).read_text()):
        command: Any = typer.main.get_command(program)
        rest = list(words)
        while rest and getattr(command, "commands", None) and rest[0] in command.commands:
            command = command.commands[rest.pop(0)]
        known = {option for parameter in command.params for option in [*parameter.opts, *parameter.secondary_opts]}
        if len(rest) == len(words) or {word.split("=")[0] for word in rest if word.startswith("--")} - known - {
            "--help"
        }:
            wrong.append(" ".join(words))
    assert not wrong


def test_the_extras_of_the_table_are_those_of_the_package() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert set(re.findall(r"`\.\[(\w+)\]`", OPERATING)) == set(extras) - {"dev", "mcp"}  # mcp: docs/client-mcp.md


def test_there_are_as_many_alerts_as_the_page_says() -> None:
    (group,) = yaml.safe_load((ROOT / "deploy" / "prometheus" / "alerts.yml").read_text())["groups"]
    words = ["no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]
    assert f"{words[len(group['rules'])]} alerts" in OPERATING
