"""Everything that the project was asked for is there: command and test of each row of CONTRIBUTING's list."""

import re
from pathlib import Path

import typer.main

from tests.docs.test_named import redis_commands, triggers, verbs

ROOT = Path(__file__).parents[2]
ROW = re.compile(r"^\| (.+?) \| `(.+?)` \| `(.+?)::(\w+)` \|$", re.MULTILINE)
ASKED = 18  # eight steps, two modules, compose; what five accounts told and what goes with it: seven rows


def rows() -> list[tuple[str, str, str, str]]:
    """Returns of each row the thing, its command, the file of its test and the test's name."""
    section = (ROOT / "CONTRIBUTING.md").read_text().partition("## Asked for, so it stays\n")[2].partition("\n## ")[0]
    return ROW.findall(section)


def commands() -> set[str]:
    from shardqa_toolchain.cli import app

    program = typer.main.get_command(app)
    groups = {name: getattr(command, "commands", None) for name, command in program.commands.items()}  # type: ignore[attr-defined]
    models = {f"shardqa-models {name} {below}".strip() for name, group in groups.items() for below in group or [""]}
    make = {f"make {verb}" for verb in re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)}
    registered = (ROOT / "gears_functions" / "registration.py").read_text()
    missed = {f"GET {prefix}…" for prefix in re.findall(r'prefix="(\w+:)\*",\s+eventTypes=\["keymiss"\]', registered)}
    return {*verbs(), *missed, *redis_commands(), *(f"RG.TRIGGER {name}" for name in triggers()), *models, *make}


def test_each_thing_asked_for_has_its_command() -> None:
    there = commands()
    assert len(rows()) == ASKED
    assert not [(asked, command) for asked, command, _, _ in rows() if command.partition(" --")[0] not in there]


def test_each_thing_asked_for_has_its_test() -> None:
    missing = [
        f"{asked}: {file}::{name}"
        for asked, _, file, name in rows()
        if not (ROOT / file).is_file() or f"def {name}(" not in (ROOT / file).read_text()
    ]
    assert not missing
