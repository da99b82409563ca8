"""Notebooks (Jupyter): their cells, Markdown as pages, code as it stands, and what it printed; no pictures."""

import json
import re
from collections.abc import Iterator
from typing import Any

from shardqa.files.composer import Composer
from shardqa.files.formats import markdown
from shardqa.files.formats.faults import apart, readable
from shardqa.files.source_file import Item, SourceFile

COLOURS = re.compile(r"\x1b\[[0-9;]*m")


def read(source: SourceFile) -> Iterator[Item]:
    composer = Composer()
    title = ""
    with readable("a notebook"):
        notebook = json.loads(source.text())
        sheets = notebook.get("worksheets") or [notebook]  # of versions up to 3
        for cell in (cell for sheet in sheets for cell in sheet["cells"]):
            with apart(composer.lost, "a cell"):
                is_first = not len(composer) and not title
                title = _add(composer, cell, is_first) or title
    yield from source.composed(composer, title)


def _add(composer: Composer, cell: dict[str, Any], is_first: bool) -> str:
    """Adds a cell; returns its title, empty where it has none."""
    words = _text(cell.get("source", cell.get("input", "")))
    match cell["cell_type"]:
        case "markdown":
            return markdown.compose(words, composer, has_title=is_first)
        case "heading":
            composer.heading(words, int(cell.get("level", 1)))
        case _:
            composer.block(words)
            for output in cell.get("outputs", []):
                composer.block(COLOURS.sub("", _output(output)))
    return ""


def _output(output: dict[str, Any]) -> str:
    data = output.get("data", {})
    has_picture = any(kind.startswith("image/") for kind in data)
    return _text(output.get("text") or ("" if has_picture else data.get("text/plain", ""))) or output.get("evalue", "")


def _text(lines: list[str] | str) -> str:
    return lines if isinstance(lines, str) else "".join(lines)
