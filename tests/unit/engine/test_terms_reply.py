"""A shard's numbers of a question's terms say whether it can rank anything."""

from hypothesis import given
from hypothesis import strategies as st

from shardqa import keys
from shardqa.analysis import query
from shardqa.gears_functions.index.corpus_index import Index
from shardqa.rounds import TermsReply
from shardqa.statistics import total

WORDS = ("mill", "river", "stood", "tower", "bridge", "1742", "Hallow", "Ford", "the", "who")
TEXTS = st.lists(st.sampled_from(WORDS), max_size=6).map(" ".join)
CORPORA = st.lists(st.tuples(TEXTS, TEXTS), max_size=12)  # title and text of each document
QUESTIONS = st.lists(st.sampled_from(WORDS), min_size=1, max_size=5).map(" ".join)


@given(CORPORA, QUESTIONS, st.sampled_from([1, 3, 5]))
def test_a_shard_that_has_none_ranks_none(documents: list[tuple[str, str]], question: str, count: int) -> None:
    shards = [Index() for _ in range(count)]
    for n, (title, text) in enumerate(documents):
        shards[n % count].put(keys.passage("c", f"d{n}", 0), title, text)
    terms = query(question)
    replies = [TermsReply(f"t{n}", 1, shard.statistics(terms), shard.titled(terms)) for n, shard in enumerate(shards)]
    statistics = total(reply.statistics for reply in replies)
    lists = [shard.rank(terms, statistics, 100) for shard in shards]
    assert [reply.has_none for reply in replies] == [not passages for passages in lists] or not statistics.passages
    assert not any(passages for reply, passages in zip(replies, lists, strict=True) if reply.has_none)
