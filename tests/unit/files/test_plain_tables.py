"""Tables that no lines draw: dots, tabs and blanks between cells, gaps between pairs, sums below a table."""

from shardqa.files.composer import Composer
from shardqa.files.formats.sheets import _beside
from shardqa.files.pairs import groups, totals
from shardqa.files.plain_tables import parts


def told(text: str) -> str:
    composer = Composer()
    composer.lines(text)
    return composer.text


def test_dots_between_name_and_value_make_a_pair_below_any_title() -> None:
    assert told("SHEET\nName ....... Winch 7\nYear . . . . . . 1987") == "SHEET\n\nName: Winch 7.\nYear: 1987."
    assert told("Docks ....... 3\nTides ....... 17") == "Docks ....... 3\nTides ....... 17", "contents are none"
    assert told(". . . . . . Winch 7") == ". . . . . . Winch 7", "dots alone are no name"


def test_tabs_make_rows_and_pairs() -> None:
    assert told("Friday\t9 – 17\nSunday\tclosed") == "Friday: 9 – 17.\nSunday: closed."
    assert told("Deck\tSeat\tGuest\nUpper\tU1\tLena Moss") == "Deck Upper has Seat: U1; Guest: Lena Moss."


def test_cells_under_one_another_make_rows_and_a_second_line_goes_on() -> None:
    table = "Post    Duty         Person\nGate    opens and    Ada\n        counts       \nKiosk   sells        Ugo"
    assert told(table) == "Post Gate has Duty: opens and counts; Person: Ada.\nPost Kiosk has Duty: sells; Person: Ugo."
    prose = "It stands.  It roars\nall day.  And at\nnight.  It sleeps."
    assert parts(prose) == [prose]


def test_tables_beside_one_another_are_apart_and_a_gap_within_one_is_none() -> None:
    assert _beside(
        [["Dish", "Price", "", "Drink", "Price"], ["Pie", "7", "", "Ale", "5"], ["Soup", "5", "", "Tea", "2"]]
    ) == [
        (0, 3),
        (3, 5),
    ]
    assert _beside([["Item", "Kind", "", "2023", "2024"], ["Oak", "a", "", "7", "8"], ["Elm", "b", "", "5", "6"]]) == [
        (0, 5)
    ]


def test_pairs_of_one_row_are_told_by_gaps_or_by_their_names() -> None:
    assert groups(["QUOTE", "", "No.", "Q-7"]) == [["QUOTE"], ["No.", "Q-7"]]
    assert groups(["No.", "Q-7", "Date", "12 March"]) == [["No.", "Q-7"], ["Date", "12 March"]]
    assert groups(["Oak", "Elm", "Ash", "Fir"]) == []


def test_a_number_beside_a_title_is_named_by_it() -> None:
    composer = Composer()
    composer.outside(["QUOTATION", "", "No.", "Q-7"], close=False)
    composer.outside(["#", "12"], close=False)
    assert composer.text == "QUOTATION\nQuotation number: Q-7.\n\nNumber: 12."


def test_a_sum_below_a_table_is_a_pair() -> None:
    rows = [
        ["1", "Plank", "10.32", "412.80"],
        ["2", "Delivery", "35", "35"],
        ["", "", "VAT 21%", "94.04"],
        ["", "Pear", "4", ""],
    ]
    assert totals(rows) == {2}
