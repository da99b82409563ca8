"""Ranks once titles are followed: as a full scan has them, on any number of shards, and explained to the last bit."""

import string
from collections import Counter
from dataclasses import replace
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from bench import retrieval
from shardqa import bridges, filters, keys
from shardqa.analysis import Query, analyse, query
from shardqa.gears_functions.index.catalogue import DocumentInfo
from shardqa.gears_functions.index.corpus_index import Index
from tests import exact

Passage = tuple[str, str, str]  # key, title, text

WORDS = ["the", "corvin", "mill", "river", "ashel", "stone", "bridge", "founder", "1742"]
phrase = st.lists(st.sampled_from(WORDS), max_size=12).map(" ".join)
title = st.lists(st.sampled_from(WORDS), max_size=2).map(" ".join)
documents = st.dictionaries(
    st.text(string.ascii_lowercase, min_size=1, max_size=3),
    st.tuples(title, st.lists(phrase, min_size=1, max_size=4)),
    max_size=10,
)

FILM = [
    (keys.passage("c", "film", 0), "The Grey Heron", "The Grey Heron is a film that Odile Marchetti directed in 1961."),
    (keys.passage("c", "woman", 0), "Odile Marchetti", "She was born in Quern, the child of a baker."),
    (keys.passage("c", "woman", 1), "Odile Marchetti", "Later she taught in Anster."),
    (keys.passage("c", "other", 0), "Born in 1961", "A book about children born in that year, by bakers."),
    (keys.passage("c", "birds", 0), "Of reeds and rushes", "They breed in reeds, and a film shows where."),
]
ASKED = query("where was the director of the film the grey heron born")


def passages_of(corpus: dict[str, tuple[str, list[str]]]) -> list[Passage]:
    return [
        (keys.passage("c", d, n), title, text) for d, (title, texts) in corpus.items() for n, text in enumerate(texts)
    ]


def filled(passages: list[Passage]) -> Index:
    found = Index()
    for key, title, text in passages:
        found.put(key, title, text, len(text), DocumentInfo(len(text), ""))
    return found


def ranked_by_a_scan(passages: list[Passage], query: Query, limit: int) -> list[tuple[str, float]]:
    """Every passage by itself, from its text, in plain Python; only the constants are shared."""
    scores = dict(exact.rank(passages, query, len(passages)))
    first = list(scores.items())[: bridges.FIRST]
    led: dict[str, float] = {}  # by document
    for source, score in first:
        for document, title in titles_of(passages):
            if document != keys.parse_passage(source).document and names(passages, source, title):
                led[document] = max(led.get(document, 0.0), bridges.CARRY * (score / first[0][1]))
    for document, share in led.items():
        own = [key for key, _, _ in passages if keys.parse_passage(key).document == document]
        key = min(own, key=lambda one: (-scores.get(one, 0.0), one))
        before = scores.get(key, 0.0)
        if before < first[0][1]:
            scores[key] = before + share * (first[0][1] - before)
    return sorted((pair for pair in scores.items() if pair[1] > 0), key=lambda pair: (-pair[1], pair[0]))[:limit]


def titles_of(passages: list[Passage]) -> list[tuple[str, tuple[str, ...]]]:
    """(document, words) of those that name something."""
    pairs = []
    for key, title, _ in passages:
        parsed, words = keys.parse_passage(key), tuple(analyse(title).content)
        if parsed.n == 0 and 0 < len(words) <= bridges.LONGEST:
            pairs.append((parsed.document, words))
    bearers = Counter(words for _, words in pairs)
    times = Counter(word for _, _, text in passages for word in analyse(text).content)
    rare = max(bridges.RARE_ANYWAY, len(passages) // bridges.RARE)
    return [
        (document, words)
        for document, words in pairs
        if len(pairs) >= bridges.TITLED
        and bearers[words] <= bridges.BEARERS_MOST
        and (len(words) > 1 or times[words[0]] <= rare)
    ]


def names(passages: list[Passage], source: str, title: tuple[str, ...]) -> bool:
    words = next(tuple(analyse(text).content) for key, _, text in passages if key == source)
    return any(words[n : n + len(title)] == title for n in range(len(words)))


@settings(max_examples=60)
@given(documents, phrase)
def test_the_index_follows_titles_as_a_full_scan_does(corpus: dict[str, tuple[str, list[str]]], question: str) -> None:
    passages = passages_of(corpus)
    found = retrieval.ranked([filled(passages)], query(question), 1_000)
    assert found == ranked_by_a_scan(passages, query(question), 1_000)


@settings(max_examples=60)
@given(documents, phrase, st.integers(2, 5), st.randoms(use_true_random=False))
def test_bridged_ranks_do_not_depend_on_the_number_of_shards(
    corpus: dict[str, tuple[str, list[str]]], question: str, count: int, random: Random
) -> None:
    shards = [Index() for _ in range(count)]
    for name, (title, texts) in corpus.items():
        shard = random.choice(shards)
        for n, text in enumerate(texts):
            shard.put(keys.passage("c", name, n), title, text)
    one = retrieval.ranked([filled(passages_of(corpus))], query(question), 1_000)
    assert retrieval.ranked(shards, query(question), 1_000) == one


def test_a_document_comes_up_whose_title_a_first_passage_names_and_never_passes_the_first() -> None:
    before = [key for key, _ in retrieval.ranked([filled(FILM)], ASKED, 10, is_bridged=False)]
    after = [key for key, _ in retrieval.ranked([filled(FILM)], ASKED, 10)]
    woman = keys.passage("c", "woman", 0)
    assert before[0] == after[0] == keys.passage("c", "film", 0)
    assert after.index(woman) < before.index(woman)
    assert set(after) == set(before), "of the document one passage is led to, which had words of the question"


def test_an_explanation_has_the_bridge_and_the_same_sum() -> None:
    index = filled(FILM)
    statistics = index.statistics(ASKED)
    statistics = replace(statistics, bridges=retrieval.leading([index], ASKED, statistics))
    for key, score in index.rank(ASKED, statistics, 10):
        why = index.explain(key, ASKED, statistics)
        assert why is not None
        assert why["score"] == score
        assert (why["bridge"] is not None) is (key == keys.passage("c", "woman", 0))
    why = index.explain(keys.passage("c", "woman", 0), ASKED, statistics)
    assert why is not None
    assert (why["bridge"]["title"], why["bridge"]["passage"]) == ("odil marchetti", keys.passage("c", "film", 0))


def test_what_a_filter_leaves_out_is_not_led_to() -> None:
    index = filled(FILM)
    statistics = index.statistics(ASKED)
    statistics = replace(statistics, bridges=retrieval.leading([index], ASKED, statistics))
    only = filters.canonical(filters.DocumentFilter(title="Of reeds and rushes"))
    assert [key for key, _ in index.rank(ASKED, statistics, 10, only)] == [keys.passage("c", "birds", 0)]


def test_one_document_alone_is_never_looked_for() -> None:
    index = filled(FILM[1:3])
    assert not index.statistics(ASKED).is_bridged
    assert index.statistics(ASKED).titles == 1 < bridges.TITLED
