"""Searches in windows find what a search of the whole text finds."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardqa.gears_functions import asides, splitting, windows

LONG = re.compile(r"(?<!\S)\S{4,}")  # as LONG_RUN, of fewer
PIECES = "a|7| |.|. |…|\n|xi|see a copy of the gnu|permission is granted to use|In no event shall the author|漢"
LEADERS, LICENCES = (asides.LEADER, 240, asides.LEADER_SIGNS), (asides.LICENCE, 240, asides.LICENCE_SIGNS)


@pytest.mark.parametrize(("pattern", "longest", "signs"), [LEADERS, LICENCES, (LONG, 4, ())])
@given(text=st.lists(st.sampled_from(PIECES.split("|")), max_size=40).map("".join), window=st.integers(1, 9))
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
