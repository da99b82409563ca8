"""What shards told of words is recalled as they would tell it again, and never where they would tell something else."""

from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from shardqa import keys
from shardqa.analysis import fingerprint, query
from shardqa.engine.term_memory import TermMemory, TermsReply
from shardqa.gears_functions.index.corpus_index import Index
from shardqa.statistics import total

WORDS = ("mill", "river", "stood", "tower", "bridge", "1742", "Hallow", "Ford", "the", "who")
TEXTS = st.lists(st.sampled_from(WORDS), max_size=6).map(" ".join)
CORPORA = st.lists(st.tuples(TEXTS, TEXTS), max_size=12)  # title and text of each document
QUESTIONS = st.lists(st.sampled_from(WORDS), min_size=1, max_size=5).map(" ".join)


def shards_of(documents: list[tuple[str, str]], count: int) -> list[Index]:
    shards = [Index() for _ in range(count)]
    for n, (title, text) in enumerate(documents):
        shards[n % count].put(keys.passage("c", f"d{n}", 0), title, text)
    return shards


def told_by(shards: list[Index], question: str, epoch: int = 1) -> list[TermsReply]:
    asked = query(question)
    return [
        TermsReply(f"host:{n}", f"t{n}", epoch, shard.statistics(asked), shard.titled(asked), fingerprint())
        for n, shard in enumerate(shards)
    ]


def remembering(told: list[TermsReply], megabytes: int = 1) -> TermMemory:
    memory = TermMemory(megabytes)
    for one in told:
        memory.remember("c", one)
    return memory


@given(CORPORA, st.lists(QUESTIONS, max_size=4), QUESTIONS, st.sampled_from([1, 3]))
def test_what_is_recalled_is_what_the_shards_would_tell(
    documents: list[tuple[str, str]], before: list[str], question: str, count: int
) -> None:
    """Also for a question never asked, whose words came in others."""
    shards, memory = shards_of(documents, count), TermMemory(1)
    for one in [*before, *(question for _ in before[:1])]:
        for told in told_by(shards, one):
            memory.remember("c", told)
    recalled = memory.recall("c", {f"t{n}": 1 for n in range(count)}, query(question))
    assert recalled in ([], told_by(shards, question))
    assert recalled or not before


@given(CORPORA, QUESTIONS, st.sampled_from([1, 3, 5]))
def test_a_shard_that_has_none_ranks_none(documents: list[tuple[str, str]], question: str, count: int) -> None:
    shards = shards_of(documents, count)
    told, asked = told_by(shards, question), query(question)
    statistics = total(one.statistics for one in told)
    lists = [shard.rank(asked, statistics, 100) for shard in shards]
    assert [one.has_none for one in told] == [not found for found in lists] or not statistics.passages
    assert not any(found for one, found in zip(told, lists, strict=True) if one.has_none)


def told(question: str = "mill river", **other: Any) -> TermsReply:
    (one,) = told_by(shards_of([("", "the mill stood at the river")], 1), question)
    return replace(one, **other)


def test_another_epoch_recalls_nothing() -> None:
    memory = remembering([told()])
    assert memory.recall("c", {"t0": 1}, query("mill")) != []
    assert memory.recall("c", {"t0": 2}, query("mill")) == []
    assert memory.recall("other", {"t0": 1}, query("mill")) == []


def test_a_pair_is_known_where_it_was_told_or_a_term_of_it_is_missing() -> None:
    shards = shards_of([("", "mill river"), ("", "mill"), ("", "mill stood at the river")], 3)
    memory = TermMemory(1)
    for one in (*told_by(shards, "mill"), *told_by(shards, "river")):
        memory.remember("c", one)
    assert [one.tag for one in memory.recall("c", {"t0": 1, "t1": 1, "t2": 1}, query("mill river"))] == ["t1"]
    for one in told_by(shards, "mill river"):
        memory.remember("c", one)
    assert memory.recall("c", {"t0": 1, "t1": 1, "t2": 1}, query("mill river")) == told_by(shards, "mill river")


def test_a_shard_is_recalled_though_another_has_changed() -> None:
    memory = remembering(told_by(shards_of([("", "mill"), ("", "river")], 2), "mill"))
    assert [one.tag for one in memory.recall("c", {"t0": 1, "t1": 2}, query("mill"))] == ["t0"]


def test_shards_that_make_other_terms_are_not_remembered() -> None:
    for one in (told(analysis="another"), told(analysis=""), told(titled=None)):
        assert remembering([one]).recall("c", {"t0": 1}, query("mill")) == []


def test_numbers_with_vectors_are_not_remembered() -> None:
    one = told()
    memory = remembering([replace(one, statistics=replace(one.statistics, vectors={"encoder": 1}))])
    assert memory.recall("c", {"t0": 1}, query("mill")) == []


def test_a_shard_that_does_not_tell_of_titles_may_have_some() -> None:
    assert not told("nothing here").titled
    assert told("nothing here").has_none
    assert not told("nothing here", titled=None).has_none


def test_memory_stays_within_its_bound_and_forgets_what_is_used_least() -> None:
    one = told("mill")
    memory = remembering([one])
    for n in range(3_000):
        memory.remember("c", replace(one, statistics=replace(one.statistics, df={f"word{n}": n}, cf={f"word{n}": n})))
        assert memory.recall("c", {"t0": 1}, query("mill")) != []
    assert memory.size <= 1_000_000
    assert memory.recall("c", {"t0": 1}, query("word1")) == []
    assert memory.recall("c", {"t0": 1}, query("word2999")) != []


def test_no_memory_recalls_nothing() -> None:
    assert remembering([told()], megabytes=0).recall("c", {"t0": 1}, query("mill")) == []
