"""Titles that first passages name are followed across shards, and nothing is, where a corpus has that off."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from bench import retrieval
from shardqa import keys
from shardqa.analysis import query
from shardqa.cluster.local import LocalCluster
from shardqa.description import record_of
from shardqa.engine import Engine
from shardqa.engine.bridging import Bridge
from shardqa.engine.reading import Readers
from shardqa.errors import ShardqaError
from shardqa.gears_functions.index.corpus_index import Index
from shardqa.schema import Document
from tests.nodes import settings_of

PEOPLE = ["Odile Marchetti", "Bruno Kessel", "Ivo Tarrant", "Hanna Brick", "Petra Lonn", "Silas Ware"]
FILMS = ["The Grey Heron", "Night of the Weir", "Salt Road", "Two Lanterns", "The Long Ferry", "Corvin"]
TEXTS = {
    **{
        f"film-{n}": (film, f"{film} is a film that {person} directed in {1950 + n}. It was shot beside a river.")
        for n, (film, person) in enumerate(zip(FILMS, PEOPLE, strict=True))
    },
    **{
        f"person-{n}": (f"{person} (artist)", f"Raised by an aunt in Quern, the child left for the city in {1920 + n}.")
        for n, person in enumerate(PEOPLE)
    },
    **{
        f"noise-{n}": (f"Notes {n}", f"A director was born in {1900 + n}; films and dates of birth.") for n in range(12)
    },
}
QUESTIONS = [f"Where was the director of the film {film} raised?" for film in FILMS]


@pytest.fixture
async def engine(cluster: LocalCluster, corpus: str) -> AsyncIterator[Engine]:
    engine = await Engine.connect(settings_of(cluster, corpus=corpus, timeout=90))
    documents = [Document(id=id, title=title, text=text) for id, (title, text) in TEXTS.items()]
    await asyncio.gather(*map(engine.documents.put, documents))
    yield engine
    await engine.catalogue.drop(corpus)
    await engine.close()


def whole(engine: Engine) -> Index:
    index = Index()
    for id, (title, text) in TEXTS.items():
        index.put(keys.passage(engine.settings.corpus, id, 0), title, text)
    return index


def expected(engine: Engine, question: str, limit: int, is_bridged: bool = True) -> list[tuple[str, float]]:
    asked = query(keys.normalise_question(question))
    return retrieval.ranked([whole(engine)], asked, limit, is_bridged=is_bridged)


async def ranks(engine: Engine, question: str, limit: int) -> list[tuple[str, float]]:
    ranked = await engine.ranking.rank(engine.question(question), limit)
    assert not ranked.failed
    assert ranked.is_settled
    return [(one.key, one.score) for one in ranked.passages]


async def test_the_best_passage_is_read_while_bridges_are_looked_for(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    began, one, look = asyncio.Event(), Readers.one, Bridge.look

    async def noted(*words: Any) -> Any:
        began.set()
        return await one(*words)

    async def once_begun(*words: Any) -> None:
        async with asyncio.timeout(20):
            await began.wait()
        await look(*words)

    monkeypatch.setattr(Readers, "one", noted)
    monkeypatch.setattr(Bridge, "look", once_begun)
    assert (await engine.ask(QUESTIONS[0])).n_best


async def test_shards_follow_titles_as_one_index_does(engine: Engine) -> None:
    for n, question in enumerate(QUESTIONS):
        for limit in (1, 2, 30):
            assert await ranks(engine, question, limit) == expected(engine, question, limit)
        person = keys.passage(engine.settings.corpus, f"person-{n}", 0)
        assert person in [key for key, _ in await ranks(engine, question, 2)]


async def test_the_second_document_is_read_and_the_explanation_says_how_it_was_found(engine: Engine) -> None:
    explanation = await engine.explain(QUESTIONS[0], k=2)
    film, person = explanation.passages[:2]
    assert (film.document, person.document) == ("film-0", "person-0")
    assert person.why is not None
    assert person.why.bridge is not None
    assert person.why.score == person.score
    assert (person.why.bridge.title, person.why.bridge.passage) == ("odil marchetti", film.key)
    assert any((edge.source, edge.target) == (film.key, person.key) for edge in explanation.graph.edges)
    assert film.why is not None
    assert film.why.bridge is None


async def test_a_shard_that_is_asked_without_an_engine_follows_titles_too(engine: Engine) -> None:
    question, corpus = QUESTIONS[1], engine.settings.corpus
    words = keys.normalise_question(question)
    best = dict(expected(engine, question, 2))
    scores: dict[str, float] = {}
    for node in engine.shards.nodes():
        shard = record_of(await engine.shards.on(node, "RG.TRIGGER", "Terms", corpus, words))
        key = keys.answer(corpus, shard["tag"], shard["epoch"], engine.settings.model, 30, words)
        reply = json.loads(await engine.shards.on(node, "GET", key))
        scores |= {name: passage["rank_score"] for name, passage in reply["passages"].items() if name in best}
    assert scores == {key: score for key, score in best.items() if key in scores}
    assert keys.passage(corpus, "person-1", 0) in scores


async def test_a_corpus_can_have_it_off_and_on_again(engine: Engine) -> None:
    corpus = engine.settings.corpus
    await engine.catalogue.switch(corpus, "bridges", False)
    assert await ranks(engine, QUESTIONS[0], 30) == expected(engine, QUESTIONS[0], 30, is_bridged=False)
    await engine.catalogue.switch(corpus, "bridges", True)
    assert await ranks(engine, QUESTIONS[0], 30) == expected(engine, QUESTIONS[0], 30)


async def test_a_title_that_is_changed_or_deleted_leads_no_more(engine: Engine) -> None:
    corpus = engine.settings.corpus
    before = await ranks(engine, QUESTIONS[2], 30)
    await engine.documents.put(Document(id="person-2", title="Somebody else", text=TEXTS["person-2"][1]))
    changed = await ranks(engine, QUESTIONS[2], 30)
    place = [key for key, _ in before].index(keys.passage(corpus, "person-2", 0))
    assert keys.passage(corpus, "person-2", 0) not in [key for key, _ in changed[: place + 1]]
    await engine.documents.delete(corpus, "person-0")
    after = await ranks(engine, QUESTIONS[0], 30)
    assert keys.passage(corpus, "person-0", 0) not in [key for key, _ in after]


@pytest.mark.parametrize("words", ["[", "{}", '[["a"], ["a"], ["a"], ["a"]]', '["mill"]'])
async def test_words_that_are_none_are_refused_before_anything_is_looked_at(engine: Engine, words: str) -> None:
    node = engine.shards.nodes()[0]
    with pytest.raises(ShardqaError, match="words are"):
        await engine.shards.on(node, "RG.TRIGGER", "Bridge", engine.settings.corpus, words)
