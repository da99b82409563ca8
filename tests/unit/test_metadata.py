"""Metadata: what is taken can be read again, whatever comes."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardqa import metadata
from shardqa.errors import BadDocument

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=20,
)


def nested(levels: int, inner: Any = 7) -> dict[str, Any]:
    """Lists within an object, `levels` containers in all."""
    for _ in range(levels - 1):
        inner = [inner]
    return {"in": inner}


@given(st.dictionaries(st.text(), values, max_size=5))
def test_what_is_packed_is_unpacked(fields: dict[str, Any]) -> None:
    try:
        packed = metadata.pack("d", fields)
    except BadDocument:
        return
    assert metadata.unpack(packed) == json.loads(packed) == fields


@pytest.mark.parametrize("levels", [1, 2, metadata.MAX_DEPTH])
def test_metadata_as_deep_as_the_bound_are_taken(levels: int) -> None:
    assert metadata.depth(nested(levels)) == levels
    assert metadata.unpack(metadata.pack("d", nested(levels))) == nested(levels)


@pytest.mark.parametrize("levels", [metadata.MAX_DEPTH + 1, 260, 100_000])
def test_deeper_metadata_are_refused_and_read_as_none(levels: int) -> None:
    with pytest.raises(BadDocument, match="32 deep"):
        metadata.pack("d", nested(levels))
    assert metadata.unpack('{"in":' + "[" * (levels - 1) + "]" * (levels - 1) + "}") == {}


def test_metadata_past_the_bound_are_refused_with_both_sizes() -> None:
    with pytest.raises(BadDocument, match=r"65,5\d\d bytes.*65,536"):
        metadata.pack("d", {"a": "é" * 32_768})


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_number_that_json_cannot_spell_is_refused(value: float) -> None:
    with pytest.raises(BadDocument, match="NaN"):
        metadata.pack("d", {"a": [value]})


@pytest.mark.parametrize("value", [None, "", "7", "[]", "{", "\ufffd", '{"a":' + '"x' * 70_000])
def test_what_another_writer_left_there_reads_as_none(value: str | None) -> None:
    assert metadata.unpack(value) == {}
