"""The packages of a folder."""

import importlib.metadata
from collections.abc import Sequence
from importlib.machinery import PathFinder
from pathlib import Path

NO_MODULES = ("bin", "__pycache__")


def packages_in(folder: Path) -> dict[str, tuple[str, str]]:
    """Returns (distribution, version) of each top level name of a folder, where they are known."""
    packages = {
        entry.name.partition(".")[0]: ("", "")
        for entry in folder.iterdir()
        if entry.suffix in (".py", ".so") or (entry.is_dir() and not entry.suffix and entry.name not in NO_MODULES)
    }
    for distribution in importlib.metadata.distributions(path=[str(folder)]):
        tops = {file.parts[0].partition(".")[0] for file in distribution.files or ()}
        packages |= dict.fromkeys(tops & packages.keys(), (distribution.name, distribution.version))
    return packages


def find(top: str, path: Sequence[str]) -> bool:
    return PathFinder.find_spec(top, list(path)) is not None


def is_in(top: str, package: tuple[str, str], path: Sequence[str]) -> bool:
    """Returns whether the path has this version of the package."""
    name, version = package
    if not name or not find(top, path):
        return False
    return next((one.version for one in importlib.metadata.distributions(name=name, path=list(path))), "") == version
