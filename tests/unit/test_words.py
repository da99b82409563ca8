"""Names are nouns of the field, docstrings are sentences. `python tests/unit/test_words.py ROOM…` lists what is not."""

import ast
import functools
import re
import subprocess
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import TypeGuard

import pytest

ROOT = Path(__file__).parents[2]
PARTICIPLES = {
    "told",
    "found",
    "met",
    "wanted",
    "asked",
    "came",
    "one",
    "given",
    "here",
    "gone",
    "kept",
    "there",
    "taken",
    "said",
    "brought",
    "held",
    "shown",
    "sought",
    "meant",
    "heard",
}
"""Words that say how a thing came about and not what it is."""
SHORT = 5  # lines: a local of so few may have any name
FRAGMENT = re.compile(
    r"(What|As|Of|The same|Like|Its|Their|That|Those|These|Such|Also|And|But|Or|Else|Otherwise|So|Then|There|Where|How"
    r"|Which|Who|Whose|They|Both|Either|Another|The other|The next|The rest|Again|Likewise|Ditto)\b|[a-z]"
)
"""How a docstring begins that needs its neighbour."""
ON_THE_WIRE = {"asked", "found", "kept", "taken"}
"""Fields and models that replies carry; renaming them would break programs."""


@functools.cache
def files_by_room() -> dict[str, list[Path]]:
    """All Python files by the longest folder of theirs that is a room."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.py"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    rooms = dict[str, list[Path]]()
    for name in listed:
        path = ROOT / name
        if path.is_file() and not path.is_symlink():
            rooms.setdefault(room_of(path.relative_to(ROOT)), []).append(path)
    return rooms


def room_of(path: Path) -> str:
    folders = path.parts[:-1]
    if folders[:2] == ("src", "shardqa"):
        return "/".join(folders[:3])
    return "/".join(folders[: 2 if folders[:1] == ("tests",) else 1]) or "."


def own_nodes(scope: ast.AST) -> Iterator[ast.AST]:
    """Yields the nodes of a function's body but not those of functions in it."""
    for child in ast.iter_child_nodes(scope):
        yield child
        if not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef):
            yield from own_nodes(child)


def long_locals(function: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[tuple[int, str]]:
    """Yields (line, name) of each stretch of more than SHORT lines from one binding to the last use before the next."""
    uses = dict[str, list[tuple[int, bool]]]()
    inside_comprehension = {
        id(name)
        for node in own_nodes(function)
        if isinstance(node, ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp)
        for name in ast.walk(node)
    }
    for node in own_nodes(function):
        if isinstance(node, ast.Name) and node.id in PARTICIPLES and id(node) not in inside_comprehension:
            uses.setdefault(node.id, []).append((node.lineno, isinstance(node.ctx, ast.Store)))
    for name, places in uses.items():
        places.sort()
        bound = [line for line, stored in places if stored]
        for first, following in pairwise([*bound, sys.maxsize]):
            last = max((line for line, _ in places if first <= line < following), default=first)
            if last - first >= SHORT:
                yield first, f"local {name!r} lives {last - first + 1} lines"


def is_attribute_of_self(node: ast.AST) -> TypeGuard[ast.Attribute]:
    return isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and ast.unparse(node.value) == "self"


def bad_names(tree: ast.Module, fixtures: bool) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            arguments = node.args
            named = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg]
            for argument in named:
                if argument and argument.arg.strip("_") in PARTICIPLES:
                    yield node.lineno, f"parameter {argument.arg!r} of {node.name}"
            yield from long_locals(node)
            if fixtures and node.name in PARTICIPLES:
                yield node.lineno, f"function {node.name!r}"
        elif isinstance(node, ast.ClassDef):
            if node.name.strip("_").lower() in PARTICIPLES - ON_THE_WIRE:
                yield node.lineno, f"class {node.name}"
            for field in node.body:
                if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
                    name = field.target.id.strip("_")
                    if name in PARTICIPLES - ON_THE_WIRE:
                        yield field.lineno, f"field {field.target.id!r} of {node.name}"
        elif is_attribute_of_self(node) and node.attr.strip("_") in PARTICIPLES:
            yield node.lineno, f"attribute self.{node.attr}"


def fragments(tree: ast.Module) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Module):
            docstring = ast.get_docstring(node)
            if docstring and FRAGMENT.match(docstring):
                yield getattr(node, "lineno", 1), f"docstring {docstring.splitlines()[0][:60]!r}"


def steering(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yields each `*(a, b)` inside a display or call: brackets that only choose where a line breaks."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Starred) and isinstance(node.value, ast.Tuple | ast.List):
            yield node.lineno, "unpacks a literal"


def offences(room: str) -> list[str]:
    lines = []
    for path in files_by_room()[room]:
        tree = ast.parse(path.read_text())
        name = path.relative_to(ROOT)
        if path.stem.strip("_") in PARTICIPLES:
            lines.append(f"{name}: the file's name")
        fixtures = path.parts[len(ROOT.parts)] in ("tests", "toolchain")
        faults = [*bad_names(tree, fixtures), *fragments(tree), *steering(tree)]
        lines += [f"{name}:{line} {text}" for line, text in sorted(faults)]
    return lines


@pytest.mark.parametrize("room", sorted(files_by_room()))
def test_names_are_nouns_and_docstrings_sentences(room: str) -> None:
    assert not offences(room)


if __name__ == "__main__":
    for listed_room in sys.argv[1:] or sorted(files_by_room()):
        text = offences(listed_room)
        print(f"{listed_room}: {len(text)}", *(text if sys.argv[1:] else ()), sep="\n  ")
