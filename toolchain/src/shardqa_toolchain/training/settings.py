"""Settings as TOML files hold them: read, and refused with the first one that does not fit."""

import tomllib
from collections.abc import Iterable
from dataclasses import fields
from pathlib import Path
from typing import Any, TypeVar

from shardqa.errors import BadData

Section = TypeVar("Section")


def read_toml(path: Path) -> dict[str, Any]:
    """Returns the content of a TOML file; raises BadData when it is none."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise BadData(f"{path} is not a recipe: {error}") from None


def section(path: Path, name: str, kind: type[Section], table: dict[str, Any]) -> Section:
    """Returns a table as a dataclass; raises BadData with the setting that is unknown or of the wrong kind."""
    where = f"{path}, [{name}]" if name else f"{path}"
    defaults = {field.name: getattr(kind(), field.name) for field in fields(kind)}  # type: ignore[arg-type]
    for key, value in table.items():
        if key not in defaults:
            raise BadData(f"{where}: {key!r} is unknown; known are {', '.join(defaults)}")
        type_of_default = type(defaults[key])
        if isinstance(value, list):
            table[key] = value = tuple(value)
        if type_of_default is float and type(value) is int:
            table[key] = value = float(value)
        if type(value) is not type_of_default:
            raise BadData(f"{where}: {key} is {value!r}, {type_of_default.__name__} is needed")
    return kind(**table)


def checked(settings: Section, rules: Iterable[tuple[str, bool, str]], where: str = "") -> Section:
    """Returns the settings; raises BadData by the first rule broken: (setting, whether it fits, what is needed)."""
    for name, fits, bound in rules:
        if not fits:
            raise BadData(f"{where}{name} is {getattr(settings, name)!r}, {bound} is needed")
    return settings
