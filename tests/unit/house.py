"""The files and rooms that the rules of the house look at."""

import ast
import functools
import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "shardqa"
ROOMS = {"api", "cluster", "files", "gears_functions", "loader", "models", "module", "seeds", "worker"}


@functools.cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


@functools.cache
def nodes(path: Path) -> tuple[ast.AST, ...]:
    return tuple(ast.walk(parsed(path)))


@functools.cache
def sources() -> list[Path]:
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    paths = [ROOT / name for name in listed.splitlines()]
    return [path for path in paths if path.is_file() and not path.is_symlink()]


def room_of(path: Path) -> str | None:
    parts = path.relative_to(ROOT).parts
    if parts[:2] == ("src", "shardqa"):
        return Path(parts[2]).stem
    return parts[0] if parts[0] in {*ROOMS, "toolchain"} else None


def evening_path(house: str) -> list[str]:
    """The files that tell the way of one house, in reading order."""
    page = (ROOT / "docs" / "architecture.md").read_text()
    section = page.partition(f"## The evening path of {house}\n")[2].partition("\n## ")[0]
    return re.findall(r"`([\w/]+\.(?:py|c))`", section)
