"""The house: links equal folders, imports go down only, no file grows past what one reads at a sitting."""

import ast
import os
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "shardqa"
ROOMS = {"api", "cluster", "gears_functions", "loader", "models", "module"}
MAX_LINES = 600

# A room may import the rooms named here, itself, and nothing else of shardqa's.
PLAIN = {"keys", "answer", "config", "errors", "memory", "topology", "__init__"}
ENGINE = {"engine", "shards", "silence", "epochs", "merging", "kept", "stored"}
MAY_IMPORT = {
    **{name: PLAIN | {"answer"} for name in PLAIN},
    **{name: PLAIN | ENGINE | {"models"} for name in ENGINE},
    "models": PLAIN,
    "gears_functions": PLAIN | {"models"},
    "module": PLAIN | {"models", "gears_functions"},
    "cluster": PLAIN,
    "loader": PLAIN | ENGINE | {"models", "cluster"},
    "api": PLAIN | ENGINE | {"models"},
    "__main__": {"cli"},
    "cli": PLAIN | ENGINE | ROOMS | {"commands"},
    "commands": PLAIN | ENGINE | ROOMS | {"cli"},
}


def sources() -> list[Path]:
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    paths = [ROOT / name for name in listed.splitlines()]
    return [path for path in paths if path.is_file() and not path.is_symlink()]


def room_of(path: Path) -> str | None:
    parts = path.relative_to(ROOT).parts
    if parts[:2] == ("src", "shardqa"):
        return Path(parts[2]).stem
    return parts[0] if parts[0] in ROOMS else None


def imported_rooms(path: Path) -> set[str]:
    found = set[str]()
    for node in ast.walk(ast.parse(path.read_text())):
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


def test_only_keys_spells_a_key() -> None:
    words = ("doc:{", "passage:{", "tokens:{", "answer:{", "ask:{", "rank:{", "epoch:{", "model:{")
    wrong = []
    for path in sources():
        if path.suffix == ".py" and room_of(path) not in (None, "keys") and "tests" not in path.parts:
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.JoinedStr) and any(ast.unparse(node)[2:].startswith(word) for word in words):
                    wrong.append(f"{path.relative_to(ROOT)}:{node.lineno}")
    assert not wrong


def test_no_source_file_is_longer_than_one_reads_at_a_sitting() -> None:
    suffixes = {".py", ".c", ".h", ".js", ".css"}
    long = {
        str(path.relative_to(ROOT)): lines
        for path in sources()
        if path.suffix in suffixes and (lines := len(path.read_text().splitlines())) > MAX_LINES
    }
    assert not long
