"""Source code and configuration: the text as it stands, with line numbers."""

import re
from collections.abc import Iterator

from shardqa.checks import MAX_DOCUMENT
from shardqa.files.composer import Composer
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


LOGGED = re.compile(
    r"\[?(\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d)?(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?|[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d)"
    r"\]?:?[ \t]+(\S.*)"
)


def read(source: SourceFile) -> Iterator[Item]:
    text, title = source.text(MAX_DOCUMENT), source.name.rpartition("/")[2]
    lines = text.splitlines()
    if title.endswith(".log") and 2 * sum(map(bool, map(LOGGED.match, lines))) > len(lines):
        yield from _log(source, lines, title)
    else:
        yield source.document(text, title, marks=_lines(text))


def _log(source: SourceFile, lines: list[str], title: str) -> Iterator[Item]:
    """Yields a log as sentences that end with the time: a reader takes what stands before a message for its number."""
    composer = Composer()
    for number, line in enumerate(lines, 1):
        match = LOGGED.match(line)
        composer.at(line=number)
        composer.block(f"{match[2].rstrip()} at {' '.join(match[1].split())}." if match else line, close=number > 1)
    yield from source.composed(composer, title)


def _lines(text: str) -> list[Mark]:
    """Returns a mark for each line that is not blank."""
    marks: list[Mark] = []
    start = 0
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            marks.append((start, Place(line=number)))
        start += len(line) + 1
    return marks
