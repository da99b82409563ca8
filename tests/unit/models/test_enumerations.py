"""Items of enumerations."""

import pytest

from shardqa.models import enumerations


@pytest.mark.parametrize(
    ("span", "items"),
    [
        ("fog lamps", ["fog lamps"]),
        ("fog lamps, side lamps and the tail lamp", ["fog lamps", "side lamps", "the tail lamp"]),
        ("oil; water, or snow", ["oil", "water", "snow"]),
        ("October 5, 1992 and 3 May", ["October 5, 1992", "3 May"]),
        ("Acme, Inc. as well as Brand & Sons", ["Acme, Inc.", "Brand", "Sons"]),
        ("sandals", ["sandals"]),
    ],
)
def test_a_span_is_cut_where_marks_and_joining_words_separate(span: str, items: list[str]) -> None:
    text = f"These: {span}."
    found = enumerations.items(text, 7, 7 + len(span))
    assert [text[start:end] for start, end in found] == items
