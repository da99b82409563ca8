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
    elif value and all(isinstance(one, Mapping) and all(map(_is_flat, one.values())) for one in value):
        _rows(composer, value)
    else:
        for n, one in enumerate(value, 1):
            if _is_flat(one):
                composer.block(f"- {_text(one)}", close=n > 1)
            else:
                own = (
                    next((one[name] for name in NAMES if _is_flat(one.get(name, {}))), n)
                    if isinstance(one, dict)
                    else n
                )
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
    names.sort(
        key=lambda name: NAMES.index(name) if name in NAMES[:3] else len(NAMES)
    )  # what a row is about comes first
    if len(names) > COLUMNS:
        for n, row in enumerate(rows):
            _object(composer, row, n)
        return
    composer.rows([[_text(row.get(name)) for name in names] for row in rows], names)


def _is_flat(value: Any) -> bool:
    return not isinstance(value, dict) and (
        not isinstance(value, list) or all(not isinstance(one, dict | list) for one in value)
    )


def _text(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(_text, value))
    return "" if value is None else "yes" if value is True else "no" if value is False else str(value)
