"""The index against the slow truth, against bm25s and networkx, and against itself on other numbers of shards."""

import string
from collections.abc import Sequence
from random import Random

import bm25s
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shardqa import keys
from shardqa.analysis import Query, query
from shardqa.errors import BadData, BadKey
from shardqa.gears_functions.index import bm25, passage_table
from shardqa.gears_functions.index.corpus_index import Index
from shardqa.statistics import CorpusStatistics, total
from tests import exact

Passage = tuple[str, str, str]  # key, title, text

vocabulary = st.sampled_from(["the", "of", "mill", "river", "stone", "bridge", "founder", "1742", "wheel", "ford"])
phrase = st.lists(vocabulary, max_size=12).map(" ".join)
documents = st.dictionaries(
    st.text(string.ascii_lowercase, min_size=1, max_size=3),
    st.tuples(phrase, st.lists(phrase, min_size=1, max_size=4)),
    max_size=8,
)


def passages_of(corpus: dict[str, tuple[str, list[str]]]) -> list[Passage]:
    return [
        (keys.passage("c", d, n), title, text) for d, (title, texts) in corpus.items() for n, text in enumerate(texts)
    ]


def filled(passages: Sequence[Passage]) -> Index:
    found = Index()
    for key, title, text in passages:
        found.put(key, title, text)
    return found


def rank(shards: Sequence[Index], question: Query, limit: int = 1_000) -> list[tuple[str, float]]:
    statistics = total(shard.statistics(question) for shard in shards)
    lists = [pair for shard in shards for pair in shard.rank(question, statistics, limit)]
    return sorted(lists, key=lambda pair: (-pair[1], pair[0]))[:limit]


@settings(max_examples=200)
@given(documents, phrase)
def test_the_index_scores_as_a_full_scan_does(corpus: dict[str, tuple[str, list[str]]], question: str) -> None:
    passages = passages_of(corpus)
    assert rank([filled(passages)], query(question)) == exact.rank(passages, query(question), 1_000)


@settings(max_examples=200)
@given(documents, phrase, st.integers(1, 6), st.randoms(use_true_random=False))
def test_scores_and_order_do_not_depend_on_the_number_of_shards(
    corpus: dict[str, tuple[str, list[str]]], question: str, count: int, random: Random
) -> None:
    passages = passages_of(corpus)
    shards = [Index() for _ in range(count)]
    shuffled = list(passages)
    random.shuffle(shuffled)  # nor on the order in which passages came
    for key, title, text in shuffled:
        shards[hash(keys.parse_passage(key).document) % count].put(key, title, text)
    assert rank(shards, query(question)) == rank([filled(passages)], query(question))


@settings(max_examples=200)
@given(documents, documents, phrase)
def test_after_any_changes_the_index_is_as_if_built_anew(
    before: dict[str, tuple[str, list[str]]], after: dict[str, tuple[str, list[str]]], question: str
) -> None:
    index = filled(passages_of(before))
    expected = passages_of(after)
    for key in set(index) - {key for key, _, _ in expected}:
        assert index.remove(key)
    for key, title, text in expected:
        index.put(key, title, text)
    assert rank([index], query(question)) == rank([filled(expected)], query(question))
    assert index.statistics(query(question)) == filled(expected).statistics(query(question))


def test_compaction_changes_no_score(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(passage_table, "COMPACT_DEAD", 10)
    passages = [(keys.passage("c", f"d{n % 40}", n // 40), "mill", f"river stone {n} bridge") for n in range(120)]
    index = filled(passages)
    for key, _, _ in passages[:100]:
        index.remove(key)
    assert len(index) == 20
    assert index.table.count_of_documents() == 20
    asked = query("which river bridge 110")
    assert rank([index], asked) == exact.rank(passages[100:], asked, 1_000)
    index.put(*passages[0])
    assert rank([index], asked) == exact.rank([*passages[100:], passages[0]], asked, 1_000)


def test_putting_the_same_passage_again_changes_nothing() -> None:
    found = Index()
    assert found.put("passage:c:{b0001}:a:0", "t", "river")
    assert not found.put("passage:c:{b0001}:a:0", "t", "river")
    assert found.put("passage:c:{b0001}:a:0", "t", "stone")
    assert len(found) == 1


def test_removing_what_is_not_there_says_so() -> None:
    assert not Index().remove("passage:c:{b0001}:a:0")


def test_a_key_of_another_form_is_refused_and_leaves_no_trace() -> None:
    found = Index()
    with pytest.raises(BadKey):
        found.put("passage:nonsense", "", "river")
    assert len(found) == 0
    assert found.put("passage:c:{b0001}:a:0", "t", "river")


def test_a_limit_keeps_the_best() -> None:
    passages = [(keys.passage("c", f"d{n}", 0), "", "river " * (n % 7) + "stone " * 5) for n in range(60)]
    whole = rank([filled(passages)], query("river"))
    assert rank([filled(passages)], query("river"), 5) == whole[:5]


def test_documents_and_characters_are_counted_once() -> None:
    index = Index()
    index.put(keys.passage("c", "a", 0), "", "one", 700)
    index.put(keys.passage("c", "a", 1), "", "two", 1_300)
    index.put(keys.passage("c", "b", 0), "", "three", 50)
    assert (index.table.count_of_documents(), len(index), index.table.characters()) == (2, 3, 1_350)
    assert sorted(index.table.keys_of("a")) == [keys.passage("c", "a", 0), keys.passage("c", "a", 1)]
    assert index.table.keys_of("z") == []


# ---- oracles


def test_bm25_of_the_body_is_lucenes(monkeypatch: pytest.MonkeyPatch) -> None:
    for kind in (bm25.Kind.TITLE, bm25.Kind.PAIR):
        monkeypatch.setitem(bm25.WEIGHTS, kind, (0.0, 0.5))
    rng = np.random.default_rng(5)
    words = ["river", "stone", "bridge", "wheel", "ford", "1742"]
    texts = [" ".join(rng.choice(words, rng.integers(1, 30))) for _ in range(40)]
    passages = [(keys.passage("c", f"d{n:02}", 0), "", text) for n, text in enumerate(texts)]
    asked = query("river 1742 wheel")
    oracle = bm25s.BM25(method="lucene", k1=bm25.K1, b=bm25.WEIGHTS[bm25.Kind.BODY][1])
    oracle.index([query_words(text) for text in texts], show_progress=False)
    expected = oracle.get_scores(list(asked.terms)) * (bm25.K1 + 1)  # Lucene drops the constant factor k1 + 1
    found = dict(rank([filled(passages)], asked))
    assert [found.get(key, 0.0) for key, _, _ in passages] == pytest.approx(expected, rel=1e-5)


def query_words(text: str) -> list[str]:
    return [query(word).terms[0] for word in text.split()]


# ---- statistics


@pytest.mark.parametrize(
    "record",
    [
        [],
        None,
        {"passages": -1},
        {"passages": "3"},
        {"passages": 1.5},
        {"df": []},
        {"df": {"a": -1}},
        {"cf": {"a": True}},
    ],
)
def test_statistics_that_no_shard_could_send_are_refused(record: object) -> None:
    with pytest.raises(BadData):
        CorpusStatistics.parse(record)


def test_statistics_survive_their_record() -> None:
    statistics = filled(passages_of({"a": ("mill", ["the river", "stone bridge"])})).statistics(
        query("stone bridge river")
    )
    assert CorpusStatistics.parse(statistics.record()) == statistics


def test_statistics_of_a_moment_ago_still_rank() -> None:
    index = filled(passages_of({"a": ("", ["river"]), "b": ("", ["stone"])}))
    asked = query("river stone")
    statistics = index.statistics(asked)
    index.put(keys.passage("c", "d", 0), "", "river river stone")
    assert len(index.rank(asked, statistics, 10)) == 3
    assert len(index.rank(asked, CorpusStatistics(5, 5, 9, 0, {}, {}), 10)) == 3


@settings(max_examples=200)
@given(documents, phrase)
def test_what_a_score_is_explained_by_adds_up_to_it_exactly(
    corpus: dict[str, tuple[str, list[str]]], question: str
) -> None:
    found, asked = filled(passages_of(corpus)), query(question)
    statistics = found.statistics(asked)
    for key, score in found.rank(asked, statistics, 1_000):
        why = found.explain(key, asked, statistics)
        assert why is not None
        assert why["score"] == score
