"""Whatever people can call or set is named in the documentation, with its default: a table of kinds."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import typer.main

from shardqa.api.app import create_app
from shardqa.cli import app as program
from shardqa.config import OTHERS, Settings
from shardqa.worker.gears.sessions.builder import Builder
from shardqa.worker.gears.settings import KNOWN
from tests.module.arguments import ModuleArgument, module_arguments

ROOT = Path(__file__).parents[2]
SOURCES = (
    "src/shardqa",
    "api",
    "cluster",
    "files",
    "loader",
    "models",
)  # the worker's variables are the module's to set
COMMAND = re.compile(r'^    \{"((?:AI|RG)\.\w+)", ', re.MULTILINE)
KEY = re.compile(r'f"([a-z]+):\{')
OPTION = re.compile(r'arguments_next_is\(a, "([A-Z]+)"\)')
VARIABLE = re.compile(r'"(SHARDQA_[A-Z_]+)"')


def documentation() -> str:
    return "\n".join(path.read_text() for path in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))])


def verbs() -> list[str]:
    def walk(command: object, name: str) -> Iterator[str]:
        commands = getattr(command, "commands", None)
        if commands is None:
            yield name
        else:
            for verb, below in commands.items():
                yield from walk(below, f"{name} {verb}")

    return list(walk(typer.main.get_command(program), "shardqa"))


def routes() -> list[str]:
    """`GET /v1/corpora`."""
    paths = create_app(Settings()).openapi()["paths"]
    return [f"{method.upper()} {path}" for path, methods in paths.items() for method in methods]


def settings() -> list[str]:
    files = [path for folder in SOURCES for path in (ROOT / folder).rglob("*.py")]
    read = {name for path in files for name in VARIABLE.findall(path.read_text())}
    return sorted({f"SHARDQA_{name.upper()}" for name in Settings.model_fields} | read)


def key_types() -> list[str]:
    return [f"{word}:" for word in sorted(set(KEY.findall((ROOT / "src" / "shardqa" / "keys.py").read_text())))]


def redis_commands() -> list[str]:
    return COMMAND.findall((ROOT / "module" / "src" / "commands.c").read_text())


def steps() -> list[str]:
    return [
        name for name in vars(Builder) if not name.startswith("_") and name not in ("run", "register", "plan_of_run")
    ]


def triggers() -> list[str]:
    code = (ROOT / "gears_functions" / "registration.py").read_text()
    return re.findall(r'^ +"([A-Z]\w+)": ', code, re.MULTILINE)


def load_arguments() -> list[str]:
    return [argument.name for argument in module_arguments()]


def model_options() -> list[str]:
    return sorted(set(OPTION.findall((ROOT / "module" / "src" / "ai" / "model_commands.c").read_text())))


KINDS: dict[str, tuple[Callable[[], list[str]], int]] = {  # how to list them, and how many there are at least
    "command line": (verbs, 30),
    "HTTP": (routes, 8),
    "settings": (settings, 15),
    "keys": (key_types, 8),
    "Redis commands": (redis_commands, 30),
    "steps of functions": (steps, 15),
    "functions of shardqa": (triggers, 15),
    "load arguments": (load_arguments, 15),
    "options of AI commands": (model_options, 8),
    "RedisGears' settings": (lambda: list(KNOWN), 10),
}


@pytest.mark.parametrize("kind", KINDS)
def test_all_of_a_kind_are_named_in_the_documentation(kind: str) -> None:
    listed, least = KINDS[kind]
    names, text = listed(), documentation()
    assert len(names) >= least, "the sources are written otherwise than this test reads them"
    assert not [
        name for name in names if not re.search(rf"{re.escape(name)}(?![\w.-])" if name[-1] != ":" else name, text)
    ]


def test_the_page_of_settings_is_as_the_code() -> None:
    text = (ROOT / "docs" / "settings.md").read_text()
    rows = dict(re.findall(r"^\| `SHARDQA_([A-Z_]+)` \| (.*?) ?\|", text, re.MULTILINE))
    defaults = {name.upper(): str(field.default or "") for name, field in Settings.model_fields.items()}
    assert {name: rows.get(name) for name in defaults} == defaults
    assert not {f"SHARDQA_{name}" for name in rows.keys() - defaults.keys()} - OTHERS


def test_the_page_of_the_command_line_has_every_command() -> None:
    text = (ROOT / "docs" / "cli.md").read_text()
    assert not [verb for verb in verbs() if f"| `{verb}` |" not in text]


@pytest.mark.parametrize("argument", module_arguments(), ids=lambda argument: argument.name)
def test_the_table_of_arguments_has_their_words_and_defaults(argument: ModuleArgument) -> None:
    page = (ROOT / "docs" / "operating.md").read_text().replace("\\|", "|")
    row = re.search(rf"^\| `{argument.name}\b ?([^`]*)`.*? \| ([^|]*) \|", page, re.MULTILINE)
    assert row, "the page has no row for it"
    if argument.words:
        assert row[1] == argument.words
    if argument.default is not None:
        zero = f" ({argument.zero or 'none'})" if argument.default == "0" != argument.least else ""
        assert row[2] == f"{argument.default}{zero}"


def test_there_are_at_most_24_arguments() -> None:
    assert len(module_arguments()) <= 24
