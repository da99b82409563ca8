"""Titles and places of files are cut to what a shard takes, and the cut is told."""

import json

import pytest

from shardqa import checks, places
from shardqa.files import formats
from shardqa.files.source_file import Lost, SourceFile
from shardqa.schema import Document

HUGE = "Mühle " * 50_000
FILES = {
    "a.html": f"<title>{HUGE}</title><p>The mill stands.",
    "a.md": f"# {HUGE}\n\nThe mill stands.",
    "a.jsonl": json.dumps({"title": HUGE, "text": "The mill stands."}),
    "a.csv": f"title,text\n{HUGE},The mill stands.\n",
    "a.eml": f"From: a@b.c\nSubject: {HUGE}\n\nThe mill stands.",
}


@pytest.mark.parametrize("name", FILES)
def test_a_huge_title_of_a_file_is_cut_and_the_cut_is_told(name: str) -> None:
    items = list(formats.read(SourceFile.of_bytes(FILES[name].encode(), name, name)))
    (document,) = (item for item in items if isinstance(item, Document))
    checks.document("", document.text, title=document.title, source=document.source)
    if name != "a.md":  # its headings are cut where they are read, and stand in the text
        assert any(isinstance(item, Lost) and "cut to 512" in item.reason for item in items)


def test_places_with_too_many_words_lose_outer_headings_and_the_loss_is_told() -> None:
    headings = [f"{n} " + "😀" * 190 for n in range(6)]
    heads = "".join(f"<h{n + 1}>{words}</h{n + 1}>" for n, words in enumerate(headings))
    page = f"<title>Mill</title>{heads}<p>The mill stands."
    items = list(formats.read(SourceFile.of_bytes(page.encode(), "a.html", "a.html")))
    document = items[0]
    assert isinstance(document, Document)
    assert document.places[-1][1].headings == headings[1:]
    assert places.check(places.encode(document.places))
    assert [item.reason for item in items if isinstance(item, Lost)] == [
        "cells or outer headings of 1 places are not told: more than 4,000 bytes each"
    ]
