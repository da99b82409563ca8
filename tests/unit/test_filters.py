"""Filters: their meaning, and texts that are none."""

from typing import Any

import pytest

from shardqa import filters
from shardqa.errors import BadFilter
from shardqa.filters import DocumentFilter

DOCUMENT = {
    "year": 2021,
    "ratio": 1.0,
    "draft": True,
    "none": None,
    "tags": ["hr", "legal"],
    "author": {"name": "Ada", "roles": [{"at": "2024-02-29"}]},
    "date": "2024-05-01",
    "at": "2024-05-01T23:30:00+02:00",
}


def holds(**fields: Any) -> bool:
    return filters.holds(
        filters.parse(filters.canonical(DocumentFilter(**fields))), "Leave", "/srv/hr/leave.md", DOCUMENT
    )


@pytest.mark.parametrize(
    "metadata",
    [
        {"year": 2021},
        {"year": 2021.0},
        {"year": [1999, 2021]},
        {"ratio": 1},
        {"draft": True},
        {"none": None},
        {"tags": "legal"},
        {"tags": ["x", "hr"]},
        {"author.name": "Ada"},
        {"author.roles.at": {"gte": "2024-02-29", "lte": "2024-02-29"}},
        {"year": {"gte": 2021, "lt": 2021.5}},
        {"date": {"gte": "2024-05-01"}},
        {"date": {"lte": "2024-05-01"}},
        {"at": {"lte": "2024-05-01", "gt": "2024-05-01T21:29:59Z"}},
        {"at": {"lt": "2024-05-01T21:30:00.000001Z"}},
        {"year": {"exists": True}, "other": {"exists": False}},
    ],
)
def test_what_a_document_meets(metadata: dict[str, Any]) -> None:
    assert holds(metadata=metadata)
    assert holds(title="Leave", metadata=metadata)
    assert not holds(title=["leave"], metadata=metadata)


@pytest.mark.parametrize(
    "metadata",
    [
        {"year": "2021"},
        {"draft": 1},
        {"ratio": True},
        {"year": {"gt": 2021}},
        {"year": {"gte": "2021-01-01"}},
        {"date": {"gte": 0}},
        {"date": {"gt": "2024-05-01"}},
        {"at": {"gt": "2024-05-01"}},
        {"tags": ["HR"]},
        {"author": "Ada"},
        {"author.name": {"exists": False}},
        {"year": []},
    ],
)
def test_what_it_does_not(metadata: dict[str, Any]) -> None:
    assert not holds(metadata=metadata)


def test_further_filters_must_hold_too() -> None:
    assert holds(all=[DocumentFilter(title="Leave"), DocumentFilter(metadata={"year": 2021})])
    assert not holds(title="Leave", all=[DocumentFilter(metadata={"year": 2022})])


def test_the_same_conditions_have_one_spelling() -> None:
    one = DocumentFilter(metadata={"a": ["x", "y", "x"], "b": 1})
    other = DocumentFilter(all=[DocumentFilter(metadata={"b": 1}), DocumentFilter(metadata={"a": ["y", "x"]})])
    assert filters.canonical(one) == filters.canonical(other)
    assert filters.canonical(None) == filters.canonical(DocumentFilter()) == ""


@pytest.mark.parametrize(
    "fields",
    [
        {"metadata": {"year": {}}},
        {"metadata": {"year": {"gte": "soon"}}},
        {"metadata": {"year": {"gte": "2024-13-01"}}},
        {"metadata": {"year": {"gte": 2**70}}},
        {"metadata": {"year": float("nan")}},
        {"metadata": {"year": "\ud800"}},
        {"metadata": {"year": list(range(1_001))}},
        {"metadata": {str(n): n for n in range(65)}},
    ],
)
def test_what_is_no_filter_is_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(BadFilter):
        filters.canonical(DocumentFilter(**fields))


@pytest.mark.parametrize("text", ["{", "[]", '{"year": 1}', '{"metadata": {"a": {"near": 1}}}', '{"metadata": 1}'])
def test_json_of_another_form_is_refused(text: str) -> None:
    with pytest.raises(BadFilter):
        filters.of_text(text)


@pytest.mark.parametrize("text", ["{", "{}", "[1]", '[["a", "in", 1]]', '[["a", "near", 1]]', '[["a", "gte", []]]'])
def test_shards_take_the_one_spelling_only(text: str) -> None:
    with pytest.raises(BadFilter):
        filters.parse(text)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('{"titel": "a"}', "titel: there is no such field; wanted is one of title, source, metadata, all"),
        (
            '{"metadata": {"year": {"get": 1}}}',
            "metadata.year.get: there is no such field; wanted is one of gte, gt, lte",
        ),
    ],
)
def test_a_field_that_is_misspelt_is_told_which_there_are(text: str, says: str) -> None:
    with pytest.raises(BadFilter) as fault:
        filters.of_text(text)
    assert says in str(fault.value)


def test_a_source_begins_with_one_of_the_texts() -> None:
    assert holds(source="/srv/hr/")
    assert holds(source=["/tmp/", "/srv"], title="Leave")
    assert not holds(source=["hr/", "/srv/hr/leave.md.gz"])
    assert not holds(source=[])
