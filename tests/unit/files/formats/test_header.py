"""The row that names the columns."""

import pytest

from shardqa.files.formats.header import row_of

ROW = ["Aaltje", "12", "Anster"]
HEADER = ["Ferry", "Passengers", "Port"]


@pytest.mark.parametrize(
    ("rows", "at"),
    [
        ([HEADER, ROW, ROW], 0),
        ([["Ferries", "", ""], HEADER, ROW, ROW], 1),
        ([["Ferries", "of 2026", ""], ["", "", ""], HEADER, ROW, ROW], 2),
        ([["", "Passengers", "Port"], ROW, ROW], 0),
        ([HEADER, ["Aaltje", "12", ""], ["Berta", "31", ""]], 0),
        ([["one column"], ["only"]], None),
    ],
)
def test_it_is_the_one_from_which_the_columns_are_filled(rows: list[list[str]], at: int | None) -> None:
    assert row_of(rows) == at
