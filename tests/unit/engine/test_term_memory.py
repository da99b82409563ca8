"""Numbers of words are recalled as shards would reply again, and never where they would reply something else."""

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


def replies_of(shards: list[Index], question: str, epoch: int = 1) -> list[TermsReply]:
    asked = query(question)
    return [
        TermsReply(f"host:{n}", f"t{n}", epoch, shard.statistics(asked), shard.titled(asked), fingerprint())
        for n, shard in enumerate(shards)
    ]


def remembering(replies: list[TermsReply], megabytes: int = 1) -> TermMemory:
    memory = TermMemory(megabytes)
    for reply in replies:
        memory.remember("c", reply)
    return memory


@given(CORPORA, st.lists(QUESTIONS, max_size=4), QUESTIONS, st.sampled_from([1, 3]))
def test_what_is_recalled_is_what_the_shards_would_tell(
    documents: list[tuple[str, str]], before: list[str], question: str, count: int
) -> None:
    """A question whose words came in others is recalled, too."""
    shards = shards_of(documents, count)
    earlier = [*before, *(question for _ in before[:1])]
    memory = remembering([reply for one in earlier for reply in replies_of(shards, one)])
    recalled = memory.recall("c", {f"t{n}": 1 for n in range(count)}, query(question))
    assert recalled in ([], replies_of(shards, question))
    assert recalled or not before


@given(CORPORA, QUESTIONS, st.sampled_from([1, 3, 5]))
def test_a_shard_that_has_none_ranks_none(documents: list[tuple[str, str]], question: str, count: int) -> None:
    shards = shards_of(documents, count)
    replies = replies_of(shards, question)
    statistics = total(reply.statistics for reply in replies)
    lists = [shard.rank(query(question), statistics, 100) for shard in shards]
    assert [reply.has_none for reply in replies] == [not ranked for ranked in lists] or not statistics.passages
    assert not any(ranked for reply, ranked in zip(replies, lists, strict=True) if reply.has_none)


def reply_to(question: str = "mill river", **other: Any) -> TermsReply:
    (reply,) = replies_of(shards_of([("", "the mill stood at the river")], 1), question)
    return replace(reply, **other)


def test_another_epoch_recalls_nothing() -> None:
    memory = remembering([reply_to()])
    assert memory.recall("c", {"t0": 1}, query("mill")) != []
    assert memory.recall("c", {"t0": 2}, query("mill")) == []
    assert memory.recall("other", {"t0": 1}, query("mill")) == []


def test_a_pair_is_known_where_it_was_told_or_a_term_of_it_is_missing() -> None:
    shards = shards_of([("", "mill river"), ("", "mill"), ("", "mill stood at the river")], 3)
    memory = remembering([*replies_of(shards, "mill"), *replies_of(shards, "river")])
    assert [reply.tag for reply in memory.recall("c", {"t0": 1, "t1": 1, "t2": 1}, query("mill river"))] == ["t1"]
    for one in replies_of(shards, "mill river"):
        memory.remember("c", one)
    assert memory.recall("c", {"t0": 1, "t1": 1, "t2": 1}, query("mill river")) == replies_of(shards, "mill river")


def test_a_shard_is_recalled_though_another_has_changed() -> None:
    memory = remembering(replies_of(shards_of([("", "mill"), ("", "river")], 2), "mill"))
    assert [one.tag for one in memory.recall("c", {"t0": 1, "t1": 2}, query("mill"))] == ["t0"]


def test_numbers_that_may_change_or_mean_something_else_are_not_remembered() -> None:
    """Shards that make other terms, or do not say how, or have vectors."""
    reply = reply_to()
    with_vectors = replace(reply, statistics=replace(reply.statistics, vectors={"encoder": 1}))
    for other in (reply_to(analysis="another"), reply_to(analysis=""), reply_to(titled=None), with_vectors):
        assert remembering([other]).recall("c", {"t0": 1}, query("mill")) == []
    assert remembering([reply], megabytes=0).recall("c", {"t0": 1}, query("mill")) == []


def test_a_shard_that_does_not_tell_of_titles_may_have_some() -> None:
    assert not reply_to("nothing here").titled
    assert reply_to("nothing here").has_none
    assert not reply_to("nothing here", titled=None).has_none


def test_memory_stays_within_its_bound_and_forgets_what_is_used_least() -> None:
    one = reply_to("mill")
    memory = remembering([one])
    for n in range(3_000):
        memory.remember("c", replace(one, statistics=replace(one.statistics, df={f"word{n}": n}, cf={f"word{n}": n})))
        assert memory.recall("c", {"t0": 1}, query("mill")) != []
    assert memory.size <= 1_000_000
    assert memory.recall("c", {"t0": 1}, query("word1")) == []
    assert memory.recall("c", {"t0": 1}, query("word2999")) != []
