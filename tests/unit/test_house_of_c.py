"""The C of the module: who may know whom."""

import re
from pathlib import Path

import networkx
import pytest

from shardqa.worker.frames import Type

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


@pytest.mark.parametrize("room", KNOWN)
def test_a_room_includes_itself_and_what_is_below_it(room: str) -> None:
    paths = sorted((SOURCE / room).glob("*.[ch]"))
    assert len(paths) > 10
    included = {path.name: set(re.findall(r'#include "(\w+)/', path.read_text())) for path in paths}
    assert not {name: rooms - KNOWN[room] for name, rooms in included.items() if rooms - KNOWN[room]}


def test_no_more_than_two_files_call_each_other_in_a_ring() -> None:
    graph = networkx.DiGraph((file, other) for file, others in calls().items() for other in others)
    assert len(graph) > 40
    assert not [sorted(ring) for ring in networkx.strongly_connected_components(graph) if len(ring) > 2]


def test_frames_have_the_same_types_in_c_in_the_worker_and_on_their_page() -> None:
    code = "\n".join(path.read_text() for path in SOURCE.glob("*/*.h"))
    page = (SOURCE.parents[1] / "docs" / "frames.md").read_text()
    types = {name: str(type.value) for name, type in Type.__members__.items()}
    assert dict(re.findall(r"FRAME_((?!HEADER|VERSION)\w+) = (\d+)", code)) == types
    assert {name: number for number, name in re.findall(r"^\| (\d+) \| ([A-Z_]+) \|", page, re.MULTILINE)} == types
