"""Answers kept in the process: the least recently used go first, memory decides."""

from hypothesis import given
from hypothesis import strategies as st

from shardqa.answer_lines import Lines
from shardqa.engine.answer_cache import MEMORY_PER_JSON, AnswerCache
from shardqa.schema import MergedCandidates

THIRD = 1_000_000 // 3 // MEMORY_PER_JSON
"""Bytes of JSON of which three answers fill a megabyte."""


def asked(number: int) -> MergedCandidates:
    return MergedCandidates(candidates=[], below=Lines(0, number / 1000, 1), shards=[])


def test_an_answer_that_was_used_stays_and_the_one_that_was_not_goes() -> None:
    kept = AnswerCache(1)
    for number in range(3):
        kept.put(str(number), asked(number), THIRD)
    assert kept.get("0") == asked(0)
    kept.put("3", asked(3), THIRD)
    assert [kept.get(key) is not None for key in "0123"] == [True, False, True, True]


def test_an_answer_that_is_put_again_counts_once() -> None:
    kept = AnswerCache(1)
    for number in range(10):
        kept.put("same", asked(number), THIRD)
    kept.put("other", asked(1), THIRD)
    assert kept.get("same") == asked(9)


def test_an_answer_larger_than_all_memory_is_not_kept() -> None:
    kept = AnswerCache(1)
    kept.put("large", asked(1), 1_000_000)
    assert kept.get("large") is None


def test_without_memory_nothing_is_kept() -> None:
    kept = AnswerCache(0)
    kept.put("key", asked(1), 1)
    assert kept.get("key") is None


@given(st.lists(st.tuples(st.sampled_from("abcdefgh"), st.integers(1, 2 * THIRD))))
def test_what_is_kept_never_takes_more_than_its_memory(puts: list[tuple[str, int]]) -> None:
    kept, sizes = AnswerCache(1), dict[str, int]()
    for key, size in puts:
        kept.put(key, asked(size), size)
        sizes[key] = size
        assert sum(sizes[name] * MEMORY_PER_JSON for name in sizes if kept.get(name)) <= 1_000_000
