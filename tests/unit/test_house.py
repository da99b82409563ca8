"""Rooms: links equal folders, imports go down only, no ring has more than two files."""

import ast
import os
import re
import subprocess
import tomllib
from collections.abc import Callable
from pathlib import Path

import networkx
import pytest

from tests.unit.house import PACKAGE, ROOMS, ROOT, evening_path, nodes, room_of, sources

# A room may import the rooms named here, itself, and nothing else of shardqa's.
PLAIN = {
    "address",
    "analysis",
    "answer_forms",
    "answer_lines",
    "bridges",
    "request",
    "spelling",
    "rounds",
    "retry",
    "tensors",
    "keys",
    "languages",
    "transient",
    "schema",
    "http_schema",
    "config",
    "errors",
    "filters",
    "extras",
    "checks",
    "description",
    "machine",
    "statistics",
    "streaming",
    "metadata",
    "places",
    "question",
    "topology",
    "__init__",
}
MAY_IMPORT = {
    **dict.fromkeys(PLAIN, PLAIN),
    "__init__": PLAIN | {"client", "engine", "models"},  # what programs import, loaded when asked for
    "client": PLAIN,
    "integrations": PLAIN | {"client", "engine", "models"},
    "engine": PLAIN | {"models"},
    "models": PLAIN,
    "worker": {"errors", "extras", "machine", "streaming", "tensors", "topology"},
    "ai": {"worker"},  # the names of worker/client for programs
    "gears_functions": PLAIN | {"models", "worker"},
    "cluster": PLAIN,
    "files": {"checks", "config", "errors", "extras", "metadata", "places", "schema"},
    "loader": PLAIN | {"engine", "models", "cluster", "files"},
    "api": PLAIN | {"engine", "files", "loader", "models"},
    "__main__": {"cli", "cluster", "extras"},
    "cli": PLAIN | ROOMS | {"integrations", "engine"},
    "toolchain": PLAIN | {"models", "cli", "engine", "files", "gears_functions", "loader"},
}


def imported_rooms(path: Path) -> set[str]:
    found = set[str]()
    for node in nodes(path):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module == "shardqa":
            names = [f"shardqa.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module]
        else:
            continue
        found |= {name.split(".")[1] for name in names if name.startswith("shardqa.")}
    return found


def test_every_room_is_linked_into_the_import_package() -> None:
    links = {link.name: os.readlink(link) for link in PACKAGE.iterdir() if link.is_symlink()}
    assert links == {room: f"../../{room}" for room in ROOMS}


def test_imports_go_down_only() -> None:
    wrong = []
    for path in sources():
        room = room_of(path) if path.suffix == ".py" and "tests" not in path.parts else None
        if room is None:
            continue
        for other in imported_rooms(path) - {room}:
            if other not in MAY_IMPORT[room]:
                wrong.append(f"{path.relative_to(ROOT)} imports shardqa.{other}")
    assert not wrong


def test_each_house_is_read_without_the_other() -> None:
    """Questions know of the worker its door alone; what the worker may import, MAY_IMPORT says."""
    door, faces = ROOT / "worker" / "runtime.py", {"ai", "worker"}
    arrows = [(path, other) for path, other in python_imports().edges if room_of(other) == "worker"]
    assert any(other == door for _, other in arrows)
    assert not [(path, other) for path, other in arrows if room_of(path) not in faces and other != door]


def test_an_evening_stays_in_its_house() -> None:
    houses = ("questions", "functions and models", "files")
    folders = [{path.partition("/")[0] for path in evening_path(house)} for house in houses]
    assert folders == [{"src", "api", "gears_functions", "models", "loader"}, {"module", "worker"}, {"files"}]


def imported_packages(path: Path) -> set[str]:
    """All top packages that a file imports, inside functions and for type checkers too."""
    names = set[str]()
    for node in nodes(path):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module)
    return {name.split(".")[0] for name in names}


def test_nothing_of_shardqa_imports_the_toolchain() -> None:
    rooms = [path for path in sources() if path.suffix == ".py" and room_of(path) not in (None, "toolchain")]
    assert len(rooms) > 200
    assert not [path for path in rooms if "shardqa_toolchain" in imported_packages(path)]


@pytest.mark.parametrize(
    ("tests", "package"),
    [(ROOT / "tests" / "unit", PACKAGE), (ROOT / "toolchain" / "tests", ROOT / "toolchain/src/shardqa_toolchain")],
)
def test_tests_of_units_lie_as_their_sources_do(tests: Path, package: Path) -> None:
    """A folder of tests is one of the package."""
    folders = {path.parent for path in tests.rglob("test_*.py")}
    names = {folder.relative_to(tests).as_posix() for folder in folders} - {"."}
    assert names
    assert not {name for name in names if not (package / name).is_dir()}


def test_the_three_runs_of_make_test_have_each_folder_of_tests_once() -> None:
    runs = ["make", "-n", "test-nodes", "test-units", "test-tools"]
    said = subprocess.run(runs, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    folders = re.findall(r"(?<= )(?:toolchain/)?tests(?:/\w+)?(?= |$)", said, re.MULTILINE)
    paths = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["pytest"]["ini_options"]["testpaths"]
    assert sorted(folders) == sorted(paths)


def test_models_has_the_folders_of_reader_and_encoder() -> None:
    folders = {path.relative_to(ROOT / "models").parts[0] for path in sources() if (ROOT / "models") in path.parents}
    assert {name for name in folders if "." not in name} == {"reader-v4-int8", "encoder-v2-int8"}


def test_only_keys_spells_a_key() -> None:
    words = ("doc:{", "passage:{", "tokens:{", "answer:{", "ask:{", "epoch:{", "model:{")
    wrong = []
    for path in sources():
        if path.suffix == ".py" and room_of(path) not in (None, "keys") and "tests" not in path.parts:
            for node in nodes(path):
                if isinstance(node, ast.JoinedStr) and any(ast.unparse(node)[2:].startswith(word) for word in words):
                    wrong.append(f"{path.relative_to(ROOT)}:{node.lineno}")
    assert not wrong


def module_of(path: Path) -> str | None:
    """The name that imports a Python file, wherever the links lead; None for files of no room."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    if path.suffix != ".py" or "tests" in parts or room_of(path) is None:
        return None
    if parts[0] in ROOMS:
        parts = ("shardqa", *parts)
    return ".".join(parts[parts.index("src") + 1 :] if "src" in parts else parts).removesuffix(".__init__")


def python_imports() -> "networkx.DiGraph[Path]":
    """All imports between modules: those inside functions and for type checkers too."""
    modules = {name: path for path in sources() if (name := module_of(path))}
    graph: networkx.DiGraph[Path] = networkx.DiGraph()
    for name, path in modules.items():
        for node in nodes(path):
            targets = list[str]()
            if isinstance(node, ast.Import):
                targets = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.module:
                members = [f"{node.module}.{alias.name}" for alias in node.names]
                targets = [member if member in modules else node.module for member in members]
            graph.add_edges_from((path, modules[target]) for target in targets if target in modules and target != name)
    return graph


def c_includes() -> "networkx.DiGraph[Path]":
    """All includes between units of the module; a unit is a .c file with its header."""
    paths = [path for path in sources() if path.suffix in (".c", ".h") and room_of(path) == "module"]
    units = {path.stem: path.with_suffix(".c") for path in paths}
    graph: networkx.DiGraph[Path] = networkx.DiGraph()
    for path in paths:
        for included in re.findall(r'#include "([\w./]+)"', path.read_text()):
            stem = Path(included).stem
            if stem in units and stem != path.stem:
                graph.add_edge(units[path.stem], units[stem])
    return graph


Graph = Callable[[], "networkx.DiGraph[Path]"]


@pytest.mark.parametrize("graph_of", [python_imports, c_includes])
def test_no_ring_of_imports_has_more_than_two_files(graph_of: Graph) -> None:
    graph = graph_of()
    assert graph.number_of_edges() > 200
    rings = [ring for ring in networkx.strongly_connected_components(graph) if len(ring) > 2]
    assert not [sorted(path.relative_to(ROOT).as_posix() for path in ring) for ring in rings]
