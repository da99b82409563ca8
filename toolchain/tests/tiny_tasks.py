"""Small data of several tasks on two texts, each kind in its own file, and a recipe over them."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from toolchain.tests import tiny

LINES: Mapping[str, Sequence[Mapping[str, Any]]] = {
    "qa": [
        {"text": tiny.RIVERS, "question": "Which town does it flow through?", "answer": [30, 35]},
        {"text": tiny.LAKES, "question": "Which bird nests there?", "answer": None},
    ],
    "said": [
        {"text": tiny.RIVERS, "question": "Which town does it flow through?", "label": True},
        {"text": tiny.LAKES, "question": "Which bird nests there?", "label": False},
    ],
    "topic": [{"text": tiny.RIVERS, "label": "river"}, {"text": tiny.LAKES, "label": "lake"}],
    "places": [
        {"text": tiny.RIVERS, "spans": [[4, 9, "WATER"], [30, 35, "TOWN"]]},
        {"tokens": ["Lake", "Constance", "is", "deep."], "labels": ["B-WATER", "I-WATER", "O", "O"]},
    ],
}

KINDS = {"qa": "span", "said": "answerable", "topic": "sequence", "places": "tokens"}


def write_lines(path: Path, entries: Sequence[Mapping[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(entry) + "\n" for entry in entries))
    return path


def recipe_text(folder: Path, form: str = "heads", start: Path | None = None, passes: float = 2) -> str:
    """A recipe of all four kinds whose start and data are written into the folder."""
    start = start or tiny.checkpoint(folder / "start")
    parts = [f'start = "{start}"\nform = "{form}"\n']
    for name, entries in LINES.items():
        path = write_lines(folder / f"{name}.jsonl", entries)
        parts.append(f'[[task]]\nname = "{name}"\nkind = "{KINDS[name]}"\ntrain = ["{path}"]\ndev = ["{path}"]\n')
    parts.append(f"[schedule]\npasses = {passes}\ntokens = 64\nrate = 5e-3\n")
    return "\n".join(parts)


def write_recipe(folder: Path, form: str = "heads", passes: float = 2) -> Path:
    path = folder / f"{form}.toml"
    path.write_text(recipe_text(folder, form, passes=passes))
    return path
