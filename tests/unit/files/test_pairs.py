"""Tables of two columns: pairs of a name and a value, or rows under a head."""

import pytest

from shardqa.files.pairs import are_pairs

PAIRS = (
    "Tel|0441 7729/Address|Quay Street 12/Founded|June 1974",
    "Owner|Marta Voss/Street|Quay Lane/Town|Lisk",
    "Hull|steel/Rig|sloop, two sails/Length|9.8 m",
    "Ship|Berta/Length|44 m/Flag|Norway",
    "Ship:|Berta/Rig:|Sloop",
    "Large text|Disabled/Zoom in|Shift Plus/High contrast|Disabled",
    "Inhaber|Mara Quist/Ort|Anster/Gewerbe|Keramik",
)
HEADED = (
    "Ferry|Passengers/Berta|31/Anna|44",
    "Route|Adult/Brennick to Anster|22 crowns/Anster to Lisk|9 crowns",
    "Name|Role/Marta Voss|Manager/Ugo Brandt|Kiln master",
    "Term|Meaning/Bow|front of the ship/Stern|rear of the ship",
    "Region|2023/North|14/South|9",
    "Street|Owner/Elm Street|Mara Quist/Quay Street|Orla Berg",
    "Item|Price 2024/Oak|12/Elm|9",
)


@pytest.mark.parametrize(("table", "is_form"), [*((one, True) for one in PAIRS), *((one, False) for one in HEADED)])
def test_pairs_are_told_from_a_table_with_a_head(table: str, is_form: bool) -> None:
    assert are_pairs([row.split("|") for row in table.split("/")]) == is_form
