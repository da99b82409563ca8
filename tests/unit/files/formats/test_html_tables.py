"""Names of a table's columns and rows: its markup says which they are, where it has any."""

import pytest

from shardqa.files.formats import html


@pytest.mark.parametrize(
    ("rows", "text"),
    [
        ("<tr><td>Ferry<td>Built<tr><td>Berta<td>1990", "Ferry Berta has Built: 1990."),
        ("<tr><th>Ferry<th>Built<tr><td>Berta<td>1990", "Ferry Berta has Built: 1990."),
        ("<thead><tr><td>Ferry<td>Built<tbody><tr><th>Berta<td>1990", "Ferry Berta has Built: 1990."),
        ("<tr><td><th>2001<th>2002<tr><th>Salt<td>3<td>4", "Salt has 2001: 3; 2002: 4."),
        ("<tr><th>Length:<td>44 m<tr><th>Built:<td>1990", "Length: 44 m.\nBuilt: 1990."),
        ("<tr><th colspan=2>Berta<tr><th>Length<td>44 m", "Berta\n\nLength: 44 m."),
        ("<tr><td rowspan=2><th>Note<tr><td colspan=2>Not on Sundays.", "Note\nNot on Sundays."),
        ("<tr><th rowspan=2>Salt<td>3<tr><td>4", "Salt: 3.\nSalt | 4"),
        (
            '<tr class="question"><td>1.<td>Where?<tr class="answer"><td><td><p>Here.<p>Or there.',
            "1. Where?\n\nHere.\n\nOr there.",
        ),
    ],
)
def test_headers_of_columns_and_of_rows_are_told_apart(rows: str, text: str) -> None:
    assert html.plain(f"<table>{rows}</table>")[1] == text
