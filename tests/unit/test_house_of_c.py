"""The C of the module: who may know whom."""

import re
from pathlib import Path

import pytest

from tests.unit.test_words import PARTICIPLES

SOURCE = Path(__file__).parents[2] / "module" / "src"
KNOWN = {"core": {"core"}, "ai": {"ai", "core"}, "gears": {"gears", "core"}}
"""What each room may include. module.c, commands.c and info.c stand above all three."""
DEFINITION = re.compile(r"^(?!static)\w[^\n;{}=]*?\b(\w+)\([^;{}]*\) \{", re.MULTILINE)
NO_CODE = re.compile(r'/\*.*?\*/|"(?:\\.|[^"\\])*"', re.DOTALL)


def calls() -> dict[str, set[str]]:
    """Returns for each file of C the files that have a function it names."""
    code = {path.name: NO_CODE.sub(" ", path.read_text()) for path in sorted(SOURCE.rglob("*.c"))}
    home = {name: file for file, text in code.items() for name in DEFINITION.findall(text)}
    return {
        file: {home[word] for word in re.findall(r"\b[a-z_]\w+\b", text) if word in home} - {file}
        for file, text in code.items()
    }


def reachable(graph: dict[str, set[str]], start: str) -> set[str]:
    reached, border = set[str](), {start}
    while border:
        border = {following for file in border for following in graph[file]} - reached
        reached |= border
    return reached


@pytest.mark.parametrize("room", KNOWN)
def test_a_room_includes_itself_and_what_is_below_it(room: str) -> None:
    paths = sorted((SOURCE / room).glob("*.[ch]"))
    assert len(paths) > 10
    included = {path.name: set(re.findall(r'#include "(\w+)/', path.read_text())) for path in paths}
    assert not {name: rooms - KNOWN[room] for name, rooms in included.items() if rooms - KNOWN[room]}


def test_no_more_than_two_files_call_each_other_in_a_ring() -> None:
    graph = calls()
    assert len(graph) > 40
    reached = {file: reachable(graph, file) for file in graph}
    rings = [{other for other in reached[file] if file in reached[other]} for file in graph]
    assert not [sorted(ring) for ring in rings if len(ring) > 2]


def test_no_parameter_field_or_variable_is_a_participle() -> None:
    declared = re.compile(rf"\w[\w ]*[ *]+({'|'.join(sorted(PARTICIPLES))})\b(?= ?[,;)=\[])")
    paths = sorted(SOURCE.rglob("*.[ch]"))
    assert not [
        f"{path.name}: {name}" for path in paths for name in declared.findall(NO_CODE.sub(" ", path.read_text()))
    ]
