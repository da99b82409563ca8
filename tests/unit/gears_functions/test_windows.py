"""Searches in windows find what a search of the whole text finds."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardqa.gears_functions import asides, splitting, windows

LONG = re.compile(r"(?<!\S)\S{4,}")  # as LONG_RUN, of fewer
PIECES = st.sampled_from(
    [
        "a",
        "7",
        " ",
        ".",
        ". ",
        "…",
        "\n",
        "xi",
        "provided as is",
        "see a copy of the gnu",
        "Permission is granted to use",
        "IN NO EVENT SHALL THE author",
        "you can redistribute it and/or modify",
        "漢",
    ]
)


@pytest.mark.parametrize(
    ("pattern", "longest", "signs"),
    [(asides.LEADER, 240, asides.LEADER_SIGNS), (asides.LICENCE, 240, asides.LICENCE_SIGNS), (LONG, 4, ())],
)
@given(text=st.lists(PIECES, max_size=40).map("".join), window=st.integers(1, 9))
def test_matches_are_those_of_the_whole_text(
    pattern: re.Pattern[str], longest: int, signs: tuple[str, ...], text: str, window: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(windows, "WINDOW", window)
        found = [match.span() for match in windows.matches(pattern, text, longest, signs)]
    assert found == [match.span() for match in pattern.finditer(text)]


def test_a_word_at_the_end_of_a_long_text_is_found() -> None:
    (match,) = windows.matches(splitting.A_WORD, "." * 3 * windows.WINDOW + "a", 1)
    assert match.start() == 3 * windows.WINDOW
