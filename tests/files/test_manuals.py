"""Manuals of Debian's packages: all of a format's files are read, and what is searched of them is text."""

import re
from collections import Counter
from pathlib import Path

import pytest

from shardqa import places
from shardqa.files.folders import SourceFiles
from shardqa.files.source_file import Lost, Skipped
from shardqa.gears_functions.splitting import split
from shardqa.models import shipped
from shardqa.models.tokenizer import Tokenizer
from shardqa.schema import Document
from tests.files import packages

READXL = "usr/lib/R/site-library/readxl/extdata"
LEADERS = re.compile(r"(?:\. ?){4,}\s*\d+")
LICENCE = re.compile(
    r"permission is (?:hereby )?granted|redistribution and use in source|implied warrant", re.IGNORECASE
)
WAY = re.compile(r"\W*(?:prev(?:ious)?|next|up|home|¶)\W*", re.IGNORECASE)
GENERATED = re.compile(r"/_sources/|searchindex|genindex|bookindex|py-modindex|/search\.html")


def read(folder: Path) -> tuple[list[Document], list[Skipped | Lost]]:
    items = list(SourceFiles([folder]))
    documents = [item for item in items if isinstance(item, Document)]
    return documents, [item for item in items if isinstance(item, Skipped | Lost)]


@pytest.mark.parametrize(
    ("package", "below", "documents", "unread"),
    [
        ("gnome-user-docs", "usr/share/help/C", 340, 0),  # Mallard
        ("gnumeric-doc", "usr/share/help/C", 65, 1),  # DocBook in parts; one of them ends what another begins
        ("manpages", "usr/share/man", 200, 0),
        ("git-man", "usr/share/man", 180, 0),
    ],
)
def test_all_files_of_a_manual_are_read(package: str, below: str, documents: int, unread: int) -> None:
    taken, lost = read(packages.folder(package) / below)
    assert len(taken) >= documents
    assert len(lost) <= unread, lost


def test_a_title_is_no_header_and_an_odd_cell_loses_no_sheet() -> None:
    documents, lost = read(packages.folder("r-cran-readxl") / READXL)
    text = {document.id: document.text for document in documents}
    assert not lost
    assert "Name Carrie Fisher has Profession: actor; Age: 60" in text["deaths.xls"]
    assert "lat -20.42 has long: 181.62; depth: 562" in text["datasets.xls"]
    assert text["datasets.xls"].count("\n") > 1_000
    assert not [id_ for id_ in text if id_.endswith(".xlsx")]  # each says what its .xls says, dates too


@pytest.mark.parametrize("package", ["debian-policy", "postgresql-doc-15", "python3.11-doc"])
def test_what_is_searched_is_text(package: str) -> None:
    """Passages that are contents, indexes, ways to other pages, licences or generated: at most one of a hundred."""
    tokenizer = Tokenizer.load(shipped.folder())
    kinds: Counter[str] = Counter()
    for document in read(packages.folder(package) / "usr/share/doc")[0]:
        marks = places.check(places.encode(document.places))
        kinds.update(_kind(document.id, passage.text) for passage in split(document.text, tokenizer, marks))
    print(f"\n{package}: {dict(kinds)}")
    assert sum(count for kind, count in kinds.items() if kind) <= kinds.total() / 100


def _kind(id_: str, text: str) -> str:
    """Classifies a passage; empty for text."""
    if GENERATED.search(id_):
        return "generated"
    if len(LEADERS.findall(text)) >= 3:
        return "contents"
    if LICENCE.search(text):
        return "licence"
    return "ways" if "¶" in text or sum(bool(WAY.fullmatch(line)) for line in text.split("\n")) >= 2 else ""
