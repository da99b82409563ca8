"""JSON of any form as text: a list of objects as rows, an object as pairs under its name."""

from collections.abc import Mapping, Sequence
from typing import Any

from shardqa.files.composer import Composer

MAX_DEPTH = 50  # objects in one another
NAMES = ("name", "title", "label", "id")  # fields that name an object of a list
COLUMNS = 40  # of a list's rows, at most


def add(composer: Composer, value: Any, level: int = 1) -> None:
    """Adds a value; its inner ones stand under headings of that level and below. Raises RecursionError."""
    if level > MAX_DEPTH:
        raise RecursionError
    if isinstance(value, Mapping):
        _object(composer, value, level)
    elif not isinstance(value, list):
        composer.block(_text(value))
    elif value and all(isinstance(one, Mapping) for one in value) and (rows := _flattened(value)):
        _rows(composer, rows)
    else:
        for n, one in enumerate(value, 1):
            if _is_flat(one):
                composer.block(f"- {_text(one)}", close=n > 1)
            else:
                named = one if isinstance(one, Mapping) else {}
                own = next((named[name] for name in NAMES if name in named and _is_flat(named[name])), n)
                composer.heading(_text(own), level)
                add(composer, one, level + 1)


def _object(composer: Composer, value: Mapping[str, Any], level: int) -> None:
    pairs = [(name, one) for name, one in value.items() if _is_flat(one)]
    for n, (name, one) in enumerate(pairs):
        if words := _text(one):
            composer.pair(name, words, close=n > 0)
    for name, one in value.items():
        if not _is_flat(one) and one:
            composer.heading(name, level)
            add(composer, one, level + 1)


def _rows(composer: Composer, rows: Sequence[Mapping[str, Any]]) -> None:
    names = list(dict.fromkeys(name for row in rows for name in row))
    # what a row is about comes first
    names.sort(key=lambda name: NAMES.index(name) if name in NAMES[:3] else len(NAMES))
    if len(names) > COLUMNS:
        for row in rows:
            _object(composer, row, 1)
        return
    composer.rows([[_text(row.get(name)) for name in names] for row in rows], names)


def _flattened(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Returns each row with the fields of its objects among its own (`price amount`); none where more is nested."""
    inner = [{name: one if isinstance(one, Mapping) else {"": one} for name, one in row.items()} for row in rows]
    if not all(_is_flat(one) for row in inner for own in row.values() for one in own.values()):
        return []
    return [
        {f"{name} {field}".strip(): one for name, own in row.items() for field, one in own.items()} for row in inner
    ]


def _is_flat(value: Any) -> bool:
    inner = value if isinstance(value, list) else [value] if isinstance(value, dict) else []
    return not any(isinstance(one, dict | list) for one in inner)


def _text(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(_text, value))
    return "" if value is None else "yes" if value is True else "no" if value is False else str(value)
