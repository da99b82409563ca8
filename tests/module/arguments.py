"""The arguments of the module, read from the one table that has them."""

import re
from dataclasses import dataclass
from pathlib import Path

TABLE = Path(__file__).parents[2] / "module" / "src" / "core" / "arguments.h"
ROW = re.compile(r"^    (NUMBER|CHOICE|TEXT)\((.*?)\)$", re.MULTILINE | re.DOTALL)
CELL = re.compile(r'"[^"]*"|[^,\s][^,]*')
PLACES = {"PYEXECUTE_LOCAL": 1, "SANDBOX_YES": 0, "0": 0}


@dataclass(frozen=True, slots=True)
class ModuleArgument:
    name: str
    # of a choice, with | between
    words: str = ""
    # None: a text
    default: str | None = None
    least: str = ""
    # what 0 stands for where it is allowed beside the bounds
    zero: str = ""
    # its name in HELLO; empty: the worker is not told
    hello: str = ""


def module_arguments() -> list[ModuleArgument]:
    rows = re.sub(r"[ \t]*\\$", "", TABLE.read_text(), flags=re.MULTILINE)
    return [read_row(kind, CELL.findall(cells)) for kind, cells in ROW.findall(rows)]


def read_row(kind: str, cells: list[str]) -> ModuleArgument:
    values = ["" if cell == "NULL" else cell.strip('"') for cell in cells]
    if kind == "TEXT":
        return ModuleArgument(values[0])
    if kind == "CHOICE":
        words = values[2]
        return ModuleArgument(values[0], words, words.split("|")[PLACES[values[3]]])
    return ModuleArgument(values[0], default=values[5], least=values[3], zero=values[6], hello=values[7])
