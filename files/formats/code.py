"""Source code and configuration: the text as it stands, with line numbers."""

import re
from collections.abc import Iterator

from shardqa.config import MAX_DOCUMENT
from shardqa.files.source_file import Item, SourceFile
from shardqa.places import Mark, Place

SUFFIXES = re.findall(
    r"\S+",
    ".py .pyi .js .mjs .cjs .ts .jsx .tsx .java .kt .scala .c .h .cc .cpp .hpp .cs .go .rs .rb .php .swift .m .sh "
    ".bash .zsh .ps1 .sql .r .jl .lua .pl .pm .ex .exs .erl .hs .ml .clj .lisp .el .dart .groovy .gradle .cmake .mk "
    ".make .dockerfile .tf .proto .graphql .yaml .yml .toml .ini .cfg .conf .properties .css .scss .log",
)
NAMES = ("readme", "license", "copying", "notice", "authors", "changelog", "makefile", "dockerfile", "contributing")
"""Files that are text without a suffix."""


def read(source: SourceFile) -> Iterator[Item]:
    text = source.text(MAX_DOCUMENT)
    yield source.document(text, source.name.rpartition("/")[2], marks=_lines(text))


def _lines(text: str) -> list[Mark]:
    """Returns a mark for each line that is not blank."""
    marks: list[Mark] = []
    start = 0
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            marks.append((start, Place(line=number)))
        start += len(line) + 1
    return marks
