"""Text that is kept and not searched, by its form: contents, indexes, licences."""

import pytest

from shardqa.gears_functions import asides
from shardqa.gears_functions.splitting import split
from shardqa.models import shipped
from shardqa.models.tokenizer import Tokenizer

CONTENTS = "1 Harbour tales . . . . . . . . 3\n2 The fleet ................ 4\n3 Ropes and knots . . . . . 12\n"
INDEX = "".join(f"{word}, {n + 1}{', 40' if n % 2 else ''}\n" for n, word in enumerate("abcdefghijklmnopqrst"))
LICENCE = "Permission is hereby granted, free of charge, to any person to deal in the ropes."
NOTICE = "Permission to sail: you may distribute it and/or modify it under the terms of the islands."
BSD = "- Permission: redistributions of source code must retain the above list of ropes."
PROSE = "The harbour was built in 1780. It holds forty boats."


def left(text: str) -> str:
    """Returns what is searched."""
    kept, at = "", 0
    for begin, end in asides.ranges(text):
        kept, at = kept + text[at:begin], end
    return kept + text[at:]


@pytest.mark.parametrize("aside", [CONTENTS, INDEX, LICENCE, NOTICE, BSD])
def test_an_aside_is_left_out_and_what_stands_around_it_is_not(aside: str) -> None:
    searched = left(f"{PROSE}\n\n{aside}\n\n{PROSE}")
    assert searched.count(PROSE) == 2
    assert not set(aside.split("\n")[1:-1]) & set(searched.split("\n"))
    assert "Permission" not in searched


def test_contents_on_one_line_are_left_out_as_well() -> None:
    assert left(f"{PROSE}\n\n{CONTENTS.replace(chr(10), ' ')}\n\n{PROSE}").split() == [*PROSE.split(), *PROSE.split()]


@pytest.mark.parametrize(
    "text",
    [
        "We waited... 3 boats came... 4 left... and 12 more stayed away for good, as is the custom here.",
        "Anna, 12\nBea, 14\nCy, 11\n" * 9,
        "Wait .... 5 minutes.",
        "".join(f"{name}, {n}\n" for n, name in enumerate("abcdefghijklmnopqrst")),
    ],
)
def test_text_that_only_looks_a_little_like_it_stays(text: str) -> None:
    assert asides.ranges(text) == []


def test_ranges_are_joined_with_those_that_are_marked() -> None:
    assert asides.ranges("x" * 50, [(10, 20), (15, 30), (40, 45)]) == [(10, 30), (40, 45)]


def test_passages_cover_all_but_the_asides_with_whole_words() -> None:
    tokenizer = Tokenizer.load(shipped.folder())
    text = f"{PROSE} Uncategorised boats lie elsewhere. {PROSE}"
    begin = text.index("categorised")
    first, second = split(text, tokenizer, [[begin, {"aside": "index"}], [begin + 20, {}]])
    assert first.text == PROSE
    assert second.text.endswith(PROSE)
    for passage in (first, second):
        assert text[passage.start : passage.end] == passage.text
        assert list(tokenizer.passage(passage.text).ids) == list(passage.ids)


def test_a_text_that_is_nothing_else_is_cut_all_the_same() -> None:
    assert [passage.text for passage in split(LICENCE, Tokenizer.load(shipped.folder()))] == [LICENCE]
