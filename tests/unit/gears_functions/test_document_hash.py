"""Checks of a document's words, before anything is written."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardqa.checks import MAX_DOCUMENT
from shardqa.errors import BadDocument, DocumentTooLarge
from shardqa.gears_functions import splitting
from shardqa.gears_functions.document_hash import FIELDS, Fields, encoded, from_hash, from_words

utf8 = st.text(st.characters(exclude_categories=["Cs"]))


@given(utf8, utf8.filter(str.strip), utf8)
def test_words_and_hash_give_the_same_fields(title: str, text: str, source: str) -> None:
    fields = Fields(title, text, source, "")
    assert from_words("k", fields.pairs()) == fields
    assert from_hash("k", encoded(fields)) == fields


def test_another_way_of_splitting_gives_another_digest(monkeypatch: pytest.MonkeyPatch) -> None:
    before = Fields("", "good", "", "").digest()
    monkeypatch.setattr(splitting, "VERSION", splitting.VERSION + 1)
    assert Fields("", "good", "", "").digest() != before


def test_fields_left_out_are_empty() -> None:
    assert from_words("k", ["text", "good"]) == Fields("", "good", "", "")
    assert from_hash("k", [None, b"good", None, None, None, None]) == Fields("", "good", "", "")


@pytest.mark.parametrize("word", FIELDS)
def test_a_field_that_is_not_utf8_is_named(word: str) -> None:
    with pytest.raises(BadDocument, match=rf"the {word} of .* is not UTF-8 \(byte 1\)"):
        from_words("k", ["text", "good", word, b"a\xff"])


def test_a_text_of_more_than_the_bound_is_refused_with_both_sizes() -> None:
    with pytest.raises(DocumentTooLarge, match=r"5,000,002 bytes of text, more than 5,000,000"):
        from_words("k", ["text", "é" * (MAX_DOCUMENT // 2 + 1)])


@pytest.mark.parametrize(("name", "value", "reason"), [
    ("title", "é" * 257, "its title has 514 bytes, more than 512"),
    ("source", "s" * 4_097, "its source has 4,097 bytes, more than 4,096"),
    ("origin", "s" * 4_097, "its origin has 4,097 bytes"),
    ("places", '[[0, {"headings": ["' + "h" * 4_000 + '"]}]]', "4,017 bytes of JSON, more than 4,000"),
    ("places", '[[0, {"page": "3"}]]', "is no mark of places"),
    ("places", '[[99999999999, {}]]', "is no mark of places"),
])  # fmt: skip
def test_what_a_document_says_beside_its_text_is_bounded(name: str, value: str, reason: str) -> None:
    with pytest.raises(BadDocument, match=reason):
        from_words("k", ["text", "good", name, value])


@pytest.mark.parametrize("metadata", ["{", "[]", "3", '"text"', "null", "{'a': 1}"])
def test_metadata_is_a_json_object_or_nothing(metadata: str) -> None:
    with pytest.raises(BadDocument, match="metadata"):
        from_words("k", ["text", "good", "metadata", metadata])


@given(utf8, utf8, utf8, utf8)
def test_digests_differ_when_title_or_text_do(title: str, text: str, other_title: str, other_text: str) -> None:
    one, other = Fields(title, text, "", ""), Fields(other_title, other_text, "", "")
    assert (one.digest() == other.digest()) == ((title, text) == (other_title, other_text))


def test_metadata_and_source_are_parts_of_the_digest() -> None:
    assert Fields("t", "x", "a", "{}").digest() != Fields("t", "x", "b", "{}").digest()
    assert Fields("t", "x", "a", "{}").digest() != Fields("t", "x", "a", "").digest()
