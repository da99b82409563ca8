"""The value of an answer's key: engines read what shards wrote."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardqa import keys
from shardqa.models.evidence import Sentence
from shardqa.models.reading_record import PassageRecord, ShardReading, SpanRecord
from shardqa.models.scoring import shipped_scoring

LOGITS = st.floats(-30, 30)
PASSAGES = st.builds(
    PassageRecord,
    key=st.integers(0, 9).map(lambda n: keys.passage("c", "étude", n)),
    title=st.text(),
    text=st.text(min_size=8),
    start=st.integers(0, 99),
    rank_score=LOGITS,
    null_logit=LOGITS,
    relevance=LOGITS,
    sentences=st.lists(st.builds(Sentence, st.integers(0, 9), st.integers(9, 20), LOGITS, LOGITS)),
    metadata=st.sampled_from(["", '{"year": 1742}']),
    places=st.sampled_from([[], [[0, {"page": 1}]]]),
)


def reading(passages: list[PassageRecord]) -> ShardReading:
    spans = [
        SpanRecord(one, one.start + 1, one.start + 5, 2.0, -1.0, (one.start, one.start + 7), 0.5) for one in passages
    ]
    keyed = {one.key: one for one in passages}
    return ShardReading("06S", 7, "m", "who", spans, keyed, shipped_scoring(), {"read": 12}, batch=len(passages))


@given(st.lists(PASSAGES, max_size=3, unique_by=lambda one: one.key))
def test_an_engine_reads_what_a_shard_wrote(passages: list[PassageRecord]) -> None:
    assert ShardReading.parse(reading(passages).json()) == reading(passages)


def test_who_looks_at_one_span_needs_not_its_passage() -> None:
    passage = PassageRecord(
        keys.passage("c", "mill", 3), "The mill", "In 1742.", 100, 1.0, 0.0, places=[[0, {"page": 2}]]
    )
    (span,) = json.loads(reading([passage]).json())["spans"]
    assert {name: span[name] for name in ("passage", "document", "text", "place")} == {
        "passage": passage.key, "document": "mill", "text": "n 17", "place": {"page": 2},
    }  # fmt: skip


@pytest.mark.parametrize("value", [b"", b"[]", b"{}", b'{"spans":[],"passages":[],"scores":{}}', b"\xff"])
def test_what_is_no_reading_is_none(value: bytes) -> None:
    assert ShardReading.parse(value) is None
