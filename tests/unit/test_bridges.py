"""Titles lead from a question's first passages to other documents; integers and merged scores decide alone."""

from typing import Any

import pytest

from shardqa import bridges, keys
from shardqa.bridges import BEARERS_MOST, CARRY, Bridges, FirstPassage, NamedBy, NamedTitles
from shardqa.errors import BadData

MILL, RIVER = keys.passage("c", "mill", 0), keys.passage("c", "river", 0)
FIRST = [
    FirstPassage(MILL, 20.0, ("corvin", "mill", "stand", "ashel")),
    FirstPassage(RIVER, 10.0, ("ashel", "flow", "corvin", "mill")),
]


def test_a_title_that_the_first_passages_name_leads_on_by_each_of_them() -> None:
    found = bridges.build(FIRST, NamedTitles({"corvin mill": 1}, {}), 1_000)
    assert found == Bridges(20.0, {"corvin mill": (NamedBy(MILL, CARRY), NamedBy(RIVER, CARRY / 2))})


def test_a_title_that_more_than_a_few_documents_bear_leads_nowhere() -> None:
    assert bridges.build(FIRST, NamedTitles({"corvin mill": BEARERS_MOST}, {}), 1_000) is not None
    assert bridges.build(FIRST, NamedTitles({"corvin mill": BEARERS_MOST + 1}, {}), 1_000) is None


@pytest.mark.parametrize(
    ("times", "passages", "leads"),
    [(5, 20, True), (6, 20, False), (10, 1_000, True), (11, 1_000, False)],
)
def test_a_title_of_one_word_leads_on_where_the_word_is_rare(times: int, passages: int, leads: bool) -> None:
    assert (bridges.build(FIRST, NamedTitles({"ashel": 1}, {"ashel": times}), passages) is not None) is leads


def test_words_that_no_first_passage_holds_in_a_row_lead_nowhere() -> None:
    titles = NamedTitles({"mill corvin": 1, "corvin stand": 1, "orvin mill": 1}, {})
    assert bridges.build(FIRST, titles, 1_000) is None
    assert bridges.build([], titles, 1_000) is None


def test_a_document_is_not_led_to_by_its_own_passages() -> None:
    found = Bridges(20.0, {"corvin mill": (NamedBy(MILL, 0.4), NamedBy(RIVER, 0.2))})
    assert found.best("corvin mill", "mill") == NamedBy(RIVER, 0.2)
    assert found.best("corvin mill", "other") == NamedBy(MILL, 0.4)
    assert Bridges(20.0, {"ashel": (NamedBy(RIVER, 0.2),)}).best("ashel", "river") is None


def test_the_first_passages_are_those_of_all_shards_together() -> None:
    lists: list[tuple[list[tuple[str, float]], list[list[str]]]] = [
        ([(RIVER, 10.0), (f"{RIVER}1", 9.0), (f"{RIVER}2", 8.0), (f"{RIVER}3", 7.0)], [["a"], ["b"], ["c"]]),
        ([(MILL, 20.0)], [["d"]]),
    ]
    assert [(one.score, one.words) for one in bridges.first_passages(lists)] == [
        (20.0, ("d",)),
        (10.0, ("a",)),
        (9.0, ("b",)),
    ]
    assert bridges.first_passages([([(MILL, 20.0)], [])]) == []  # of a shard that tells no words


def test_counts_of_shards_add_up() -> None:
    shards = [
        NamedTitles({"ashel": 1, "mill": 1}, {"ashel": 2, "mill": 3}),
        NamedTitles({"ashel": 2}, {"ashel": 3}),
        NamedTitles({}, {}),
    ]
    assert bridges.counted(shards) == NamedTitles({"ashel": 3, "mill": 1}, {"ashel": 5, "mill": 3})


def test_bridges_come_back_from_json_as_they_were() -> None:
    found = bridges.build(FIRST, NamedTitles({"corvin mill": 1}, {}), 1_000)
    assert found is not None
    assert Bridges.parse(found.record()) == found


@pytest.mark.parametrize(
    "record",
    [
        [],
        {"titles": {}},
        {"ceiling": "1", "titles": {}},
        {"ceiling": -1.0, "titles": {}},
        {"ceiling": float("inf"), "titles": {}},
        {"ceiling": 1.0, "titles": []},
        {"ceiling": 1.0, "titles": {"a": [["no key", 0.4]]}},
        {"ceiling": 1.0, "titles": {"a": [[MILL, 1.5]]}},
        {"ceiling": 1.0, "titles": {"a": [[MILL, True]]}},
        {"ceiling": 1.0, "titles": {"a": [[MILL]]}},
    ],
)
def test_what_are_no_bridges_is_refused(record: Any) -> None:
    with pytest.raises(BadData, match="bridges are"):
        Bridges.parse(record)


@pytest.mark.parametrize("record", ["mill", [["a"]] * 4, [["a"] * 2_001], [[1]], ["mill"], {"a": 1}])
def test_words_that_no_ranking_told_are_refused(record: object) -> None:
    with pytest.raises(BadData, match="the words are"):
        bridges.parse_words(record)
