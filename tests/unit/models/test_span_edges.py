"""Spans that a reader cuts at a mark, and what they are widened to."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardqa.models.span_edges import widened


@pytest.mark.parametrize(
    ("text", "span", "whole"),
    [
        ("It is set in /etc/papersize by you.", "papersize", "/etc/papersize"),
        ("It is set in /etc/papersize.", "etc", "/etc/papersize"),
        ("Set R_LIBS_USER first.", "LIBS", "R_LIBS_USER"),
        ("Write to <ada@mill.org> now", "ada", "ada@mill.org"),
        ("Write to ada@mill.org.", "mill", "ada@mill.org"),
        ("It leaves at 12:30, as ever.", "12", "12:30"),
        ("By the Church (USA) and others", "Church (USA", "Church (USA)"),
        ("The forest (62 acres) stands", "62 acres)", "(62 acres)"),
        ("Keep [all of it] here", "Keep [all of it", "Keep [all of it]"),
        ("The mill (1742) burnt.", "1742", "1742"),
        ("It ended.Then it began.", "ended", "ended"),
        ("It was Bjarne Stroustrup, in 1985.", "Bjarne Stroustr", "Bjarne Stroustrup"),
        ("The New York-based firm", "New York", "New York"),
        ("It stands. Still.", "stands", "stands"),
        ("風車/水車は川にある", "風車", "風車"),
    ],
)
def test_a_span_grows_to_whole_names_and_brackets_and_no_further(text: str, span: str, whole: str) -> None:
    start = text.index(span)
    begin, end = widened(text, start, start + len(span))
    assert text[begin:end] == whole


@given(st.text("a1_/@.:-([)] \n", max_size=40), st.integers(0, 40), st.integers(0, 40))
def test_a_span_never_shrinks_and_stays_in_its_text(text: str, first: int, second: int) -> None:
    start, end = sorted((min(first, len(text)), min(second, len(text))))
    begin, stop = widened(text, start, end)
    assert 0 <= begin <= start <= end <= stop <= len(text)
