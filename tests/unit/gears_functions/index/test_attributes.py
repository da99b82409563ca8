"""Filters on the index against a naive look at each document, and ranks with them against ranks without."""

import json
import string
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shardqa import filters, keys
from shardqa.analysis import query
from shardqa.filters import DocumentFilter, FilterBounds
from shardqa.gears_functions.index import passage_table
from shardqa.gears_functions.index.catalogue import DocumentInfo
from shardqa.gears_functions.index.corpus_index import Index
from shardqa.statistics import total

names = st.sampled_from(["a", "b", "a.b", "c"])
dates = st.sampled_from(["2024-02-29", "2024-02-29T12:00:00Z", "2024-03-01T00:30:00+01:00", "2024-03-01", "1.3.2024"])
scalars = st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from([0.5, 1.0, -2.5]) | dates
values = st.recursive(scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=2))
metadatas = st.dictionaries(names, values, max_size=3)
titles = st.sampled_from(["mill", "the river", ""])
words = st.lists(st.sampled_from(["mill", "river", "stone", "bridge", "the"]), max_size=6).map(" ".join)
corpora = st.dictionaries(
    st.text(string.ascii_lowercase, min_size=1, max_size=3),
    st.tuples(titles, metadatas, st.lists(words, min_size=1, max_size=3)),
    max_size=8,
)
bounds = st.integers(-3, 3) | st.sampled_from([0.5, "2024-02-29", "2024-03-01", "2024-02-29T23:30:00Z"])
ranges = st.builds(
    lambda test, bound: FilterBounds.model_validate({test: bound}), st.sampled_from(["gte", "gt", "lte", "lt"]), bounds
)
conditions = scalars | st.lists(scalars, max_size=3) | ranges | st.builds(FilterBounds, exists=st.booleans())
sources = st.none() | st.sampled_from(["a/", "b/c"]) | st.lists(st.sampled_from(["a", "b/", "", "z/"]), max_size=2)
wanted = st.builds(
    DocumentFilter, title=st.none() | titles, source=sources, metadata=st.dictionaries(names, conditions, max_size=2)
)
Corpus = dict[str, tuple[str, dict[str, Any], list[str]]]


def source_of(document: str) -> str:
    return f"{document[:1]}/{document}"


def fill(index: Index, document: str, title: str, metadata: dict[str, Any], texts: list[str]) -> None:
    for n, text in enumerate(texts):
        info = None if n else DocumentInfo(1, json.dumps(metadata), source_of(document))
        index.put(keys.passage("c", document, n), title, text, n, info)


def filled(corpus: Corpus) -> Index:
    index = Index()
    for document, parts in corpus.items():
        fill(index, document, *parts)
    return index


@settings(max_examples=300)
@given(corpora, wanted)
def test_the_index_lets_through_what_a_look_at_each_document_does(corpus: Corpus, given_filter: DocumentFilter) -> None:
    text = filters.canonical(given_filter)
    clauses = filters.parse(text)
    naive = {
        one for one, (title, metadata, _) in corpus.items() if filters.holds(clauses, title, source_of(one), metadata)
    }
    assert filled(corpus).catalogue.chosen(text) == naive


@settings(max_examples=200)
@given(corpora, corpora, wanted)
def test_after_any_changes_it_is_as_if_built_anew(before: Corpus, after: Corpus, given_filter: DocumentFilter) -> None:
    text = filters.canonical(given_filter)
    index = filled(before)
    index.catalogue.chosen(text)  # what is remembered must not outlive the change
    for key in list(index):
        index.remove(key)
    for document, parts in after.items():
        fill(index, document, *parts)
    assert index.catalogue.chosen(text) == filled(after).catalogue.chosen(text)


@settings(max_examples=200)
@given(corpora, wanted, words, st.integers(1, 4))
def test_ranks_with_a_filter_are_those_without_for_what_it_lets_through_on_any_number_of_shards(
    corpus: Corpus, given_filter: DocumentFilter, question: str, count: int
) -> None:
    text, terms = filters.canonical(given_filter), query(question)
    whole = filled(corpus)
    statistics = whole.statistics(terms)
    chosen = whole.catalogue.chosen(text)
    plain = [(k, s) for k, s in whole.rank(terms, statistics, 99) if keys.parse_passage(k).document in chosen]
    assert whole.rank(terms, statistics, 99, text) == plain
    shards = [Index() for _ in range(count)]
    for n, (document, parts) in enumerate(corpus.items()):
        fill(shards[n % count], document, *parts)
    together = total(shard.statistics(terms) for shard in shards)
    lists = [pair for shard in shards for pair in shard.rank(terms, together, 99, text)]
    assert sorted(lists, key=lambda pair: (-pair[1], pair[0])) == plain


def test_few_of_many_passages_have_the_same_scores_before_and_after_compaction(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few enough that each is looked up among a term's places, rather than each place among the passages."""
    monkeypatch.setattr(passage_table, "COMPACT_DEAD", 50)
    index, terms = Index(), query("which stone bridge over the river stone")
    for n in range(300):
        text = "river stone " * (n % 3) + f"bridge {n} over the river " * (1 + n % 2)
        index.put(keys.passage("c", str(n // 2), n % 2), "mill", text, n, DocumentInfo(9, json.dumps({"n": n // 2})))
    some = filters.canonical(DocumentFilter(metadata={"n": [7, 140]}))
    for _ in range(2):
        statistics = index.statistics(terms)
        plain = index.rank(terms, statistics, 999)
        wanted = [(key, score) for key, score in plain if keys.parse_passage(key).document in ("7", "140")]
        assert len(wanted) == 4
        assert index.rank(terms, statistics, 999, some) == wanted
        for n in range(20, 250):
            index.remove(keys.passage("c", str(n // 2), n % 2))
    assert len(index.table.keys) < 300, "it was compacted"
