"""Answers in Redis: what is packed comes back, and what is not ours is none."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardqa.answer_lines import Lines
from shardqa.engine import answer_cache
from shardqa.schema import Candidate, MergedCandidates, ShardUse

TEXT = st.text(st.characters(codec="utf-8"), max_size=20)
NUMBER = st.floats(allow_nan=False, allow_infinity=False)
COUNT = st.integers(0, 1_000_000)
CANDIDATES = st.builds(
    Candidate,
    answer=TEXT,
    score=NUMBER,
    document=TEXT,
    title=TEXT,
    start=COUNT,
    end=COUNT,
    passage=st.sampled_from(["", "one", "another", "Straße 😀"]),
    passage_start=COUNT,
    shard=TEXT,
    rank_score=NUMBER,
    margin=NUMBER,
)
USES = st.builds(
    ShardUse, node=TEXT, tag=TEXT, passages=COUNT, cached=st.booleans(), us=st.dictionaries(TEXT, COUNT, max_size=3)
)
ASKED = st.builds(
    MergedCandidates,
    candidates=st.lists(CANDIDATES, max_size=8),
    below=st.builds(Lines, NUMBER, NUMBER, NUMBER),
    shards=st.lists(USES),
)


@given(ASKED)
def test_what_is_packed_comes_back(asked: MergedCandidates) -> None:
    assert answer_cache.unpack(answer_cache.pack(asked)) == asked


def test_a_passage_is_stored_once_however_many_candidates_it_has() -> None:
    one = Candidate(
        answer="1742", score=0.5, document="mill", title="The mill", start=3, end=7, passage="In 1742 it was built.",
        passage_start=0, shard="06S", rank_score=9.5, margin=1.5,
    )  # fmt: skip
    other = one.model_copy(update={"answer": "built", "start": 15, "end": 20})
    packed = answer_cache.pack(MergedCandidates(candidates=[one, other], below=Lines(0.1, 0.4, 0.6), shards=[]))
    assert packed.count(b"In 1742 it was built.") == packed.count(b"The mill") == 1


@pytest.mark.parametrize(
    "value",
    [
        b"",
        b"\xff",
        b"7",
        b"[]",
        b"{}",
        b'{"passages": [], "candidates": 7}',
        b'{"passages": [], "candidates": [{"of": 0}]}',
        b'{"passages": ["a"], "candidates": [{"of": 0}]}',
        b'{"passages": [{}], "candidates": [{"of": 0}]}',
        b'{"passages": [{}], "candidates": ["b"]}',
        b'{"candidates": [], "no_answer_below": 0.4, "shards": []}',
    ],
)
def test_a_value_that_is_not_ours_is_none(value: bytes) -> None:
    assert answer_cache.unpack(value) is None
