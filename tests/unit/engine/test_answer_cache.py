"""Cached answers: in the process the least recently used go first; in Redis what is not ours is none."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardqa.answer_lines import Lines
from shardqa.engine.answer_cache import MEMORY_PER_JSON, AnswerCache, pack, unpack
from shardqa.schema import Candidate, MergedCandidates, ShardUse

THIRD = 1_000_000 // 3 // MEMORY_PER_JSON  # bytes of JSON of which three answers fill a megabyte
TEXT = st.text(st.characters(codec="utf-8"), max_size=20)
NUMBER = st.floats(allow_nan=False, allow_infinity=False)
COUNT = st.integers(0, 1_000_000)
FIELDS = {
    **dict.fromkeys(("answer", "document", "title", "shard"), TEXT),
    **dict.fromkeys(("score", "rank_score", "margin"), NUMBER),
    **dict.fromkeys(("start", "end", "passage_start"), COUNT),
    "passage": st.sampled_from(["", "one", "another", "Straße 😀"]),
}
USES = st.builds(
    ShardUse, node=TEXT, tag=TEXT, passages=COUNT, cached=st.booleans(), us=st.dictionaries(TEXT, COUNT, max_size=3)
)
ANSWERS = st.builds(
    MergedCandidates,
    auto=st.just("span"),
    composed=st.just({}),
    candidates=st.lists(st.builds(Candidate, **FIELDS), max_size=8),
    below=st.builds(Lines, NUMBER, NUMBER, NUMBER),
    shards=st.lists(USES),
)


def answer(number: int) -> MergedCandidates:
    return MergedCandidates(candidates=[], below=Lines(0, number / 1000, 1), shards=[], composed={}, auto="span")


def test_an_answer_that_was_used_stays_and_the_one_that_was_not_goes() -> None:
    cache = AnswerCache(1)
    for number in range(3):
        cache.put(str(number), answer(number), THIRD)
    assert cache.get("0") == answer(0)
    cache.put("3", answer(3), THIRD)
    assert [cache.get(key) is not None for key in "0123"] == [True, False, True, True]


def test_an_answer_that_is_put_again_counts_once() -> None:
    cache = AnswerCache(1)
    for number in range(10):
        cache.put("same", answer(number), THIRD)
    cache.put("other", answer(1), THIRD)
    assert cache.get("same") == answer(9)


@pytest.mark.parametrize(("megabytes", "size"), [(1, 1_000_000), (0, 1)])
def test_an_answer_larger_than_all_memory_is_not_kept(megabytes: int, size: int) -> None:
    cache = AnswerCache(megabytes)
    cache.put("large", answer(1), size)
    assert cache.get("large") is None


@given(st.lists(st.tuples(st.sampled_from("abcdefgh"), st.integers(1, 2 * THIRD))))
def test_all_answers_never_take_more_than_their_memory(puts: list[tuple[str, int]]) -> None:
    cache, sizes = AnswerCache(1), dict[str, int]()
    for key, size in puts:
        cache.put(key, answer(size), size)
        sizes[key] = size
        assert sum(sizes[name] * MEMORY_PER_JSON for name in sizes if cache.get(name)) <= 1_000_000


@given(ANSWERS)
def test_what_is_packed_comes_back(merged: MergedCandidates) -> None:
    assert unpack(pack(merged)) == merged


def test_a_passage_is_stored_once_however_many_candidates_it_has() -> None:
    first = Candidate(
        answer="1742", score=0.5, corpus="c", document="mill", title="The mill", start=3, end=7,
        passage="In 1742 it was built.", passage_start=0, shard="06S", rank_score=9.5, margin=1.5,
    )  # fmt: skip
    second = first.model_copy(update={"answer": "built", "start": 15, "end": 20})
    packed = pack(answer(1).model_copy(update={"candidates": [first, second]}))
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
    assert unpack(value) is None
