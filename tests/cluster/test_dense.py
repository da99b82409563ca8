"""Passages found by vectors, too: on every number of shards alike, and never by a vector that is not theirs."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from pathlib import Path

import pytest

from bench import retrieval
from shardqa import keys
from shardqa.analysis import query
from shardqa.cluster import node
from shardqa.cluster.local import LocalCluster
from shardqa.engine import Engine
from shardqa.gears_functions.index.corpus_index import Index
from shardqa.loader import dense, models, preparation
from shardqa.loader.models import ShardModel
from shardqa.models import embedding, shipped
from shardqa.models.embedding import StoredVectors
from shardqa.schema import Document
from shardqa.statistics import QuestionVector
from tests.encoders import write_tiny_encoder
from tests.nodes import settings_of
from tests.workers import kill_worker

PLACES = ["Hallow", "Brennick", "Tarn", "Ostby", "Quill"]
TEXTS = {
    f"{subject}-{place}": f"The {subject} of {place} was finished in {1700 + 7 * n}. It stands by a river."
    for n, place in enumerate(PLACES)
    for subject in ("mill", "bridge", "tower", "inn")
}
QUESTIONS = ("Which tower stands in Ostby?", "mill 1742 river", "What was finished near Quill?", "Is there an inn?")
SECONDS = 60


@pytest.fixture(scope="module")
def encoded(start_cluster: Callable[..., LocalCluster]) -> LocalCluster:
    """Three shards of these tests' own: an encoder is every corpus' matter."""
    return start_cluster(shards=3)


@pytest.fixture
def one_shard(start_cluster: Callable[..., LocalCluster]) -> LocalCluster:
    return start_cluster(shards=1)


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_encoder(tmp_path_factory.mktemp("encoder") / "tiny")


@pytest.fixture
async def engine(encoded: LocalCluster, corpus: str) -> AsyncIterator[Engine]:
    engine = await Engine.connect(settings_of(encoded, corpus=corpus, timeout=90))
    documents = (Document(id=id, title=id.partition("-")[0], text=text) for id, text in TEXTS.items())
    await asyncio.gather(*map(engine.documents.put, documents))
    yield engine
    await engine.catalogue.drop(corpus)
    await engine.close()


async def count(engine: Engine) -> int | None:
    return next(one.encoded for one in (await engine.catalogue.corpora()).corpora if one.name == engine.settings.corpus)


async def until(holds: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(SECONDS):
        while not await holds():  # noqa: ASYNC110 - of another process
            await asyncio.sleep(0.05)


async def until_encoded(engine: Engine) -> None:
    async def is_encoded() -> bool:
        return await count(engine) == len(TEXTS)

    await until(is_encoded)


async def push(engine: Engine, folder: Path) -> None:
    await dense.push(engine, folder)
    await until_encoded(engine)


async def hash_of(engine: Engine, document: str) -> dict[bytes, bytes]:
    key = keys.passage(engine.settings.corpus, document, 0)
    fields: dict[bytes, bytes] = await engine.shards.by_key(key, "HGETALL")
    return fields


async def ranks(engine: Engine, question: str) -> list[tuple[str, float]]:
    ranked = await engine.ranking.rank(engine.question(question), 100)
    assert not ranked.failed
    return [(one.key, one.score) for one in ranked.passages]


async def one_index(engine: Engine) -> Index:
    """Everything in one index, of what is stored."""
    index = Index()
    for document in TEXTS:
        fields = await hash_of(engine, document)
        key = keys.passage(engine.settings.corpus, document, 0)
        index.put(key, fields[b"title"].decode(), fields[b"text"].decode())
        if b"vector" in fields and (vector := StoredVectors.unpack(fields[b"vector"])):
            index.put_vectors(key, vector)
    return index


async def ranks_of_one_index(engine: Engine, question: str, vector: QuestionVector | None) -> list[tuple[str, float]]:
    index, asked = await one_index(engine), query(keys.normalise_question(question))
    return retrieval.ranked([index], asked, 100, vector)


async def vector_of(engine: Engine, question: str) -> QuestionVector:
    terms = await engine.ranking.terms(engine.question(question))
    assert terms.statistics.near is not None
    return terms.statistics.near


async def test_the_shipped_encoder_is_stored_unless_it_was_removed_or_another_is_there(
    engine: Engine, encoder: Path
) -> None:
    await dense.remove(engine)
    assert (await preparation.prepare(engine)).encoder_stored == []
    await dense.push(engine, encoder)
    assert (await preparation.prepare(engine)).encoder_stored == []
    await dense.remove(engine)
    await engine.shards.by_key(keys.NO_ENCODER, "UNLINK")
    assert len((await preparation.prepare(engine)).encoder_stored) == 3
    await until_encoded(engine)


@pytest.mark.parametrize("label", [f"{shipped.ENCODER_NAME}@{'0' * 16} {embedding.MARK}", f"own@{'0' * 16} encoder=1"])
async def test_an_encoder_of_a_former_release_or_form_is_replaced(engine: Engine, encoder: Path, label: str) -> None:
    await dense.remove(engine)
    shards = (await preparation.register(engine)).shards
    await models.store(engine, shards, replace(ShardModel.encoder("own", encoder), label=label))
    await engine.shards.by_key(keys.NO_ENCODER, "UNLINK")
    assert len((await preparation.prepare(engine)).encoder_stored) == 3


async def test_the_corpus_that_was_asked_last_is_encoded_first(one_shard: LocalCluster, encoder: Path) -> None:
    async with await Engine.connect(settings_of(one_shard, corpus="asked", timeout=90)) as engine:
        await dense.remove(engine)
        for corpus in ("first", "asked"):
            documents = (Document(id=id, corpus=corpus, text=text) for id, text in TEXTS.items())
            await asyncio.gather(*map(engine.documents.put, documents))
        await engine.ask("Which tower stands in Ostby?")
        await dense.push(engine, encoder)
        looks = list[dict[str, int | None]]()

        async def is_encoded() -> bool:
            looks.append({one.name: one.encoded for one in (await engine.catalogue.corpora()).corpora})
            return looks[-1]["first"] == len(TEXTS)

        await until(is_encoded)
        assert all(one["asked"] == len(TEXTS) for one in looks if one["first"])


async def test_three_shards_rank_by_vectors_as_one_index_does_once_there_are_any(
    engine: Engine, encoder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    await dense.remove(engine)
    by_words = [await ranks(engine, question) for question in QUESTIONS]
    assert by_words == [await ranks_of_one_index(engine, question, None) for question in QUESTIONS]
    assert await count(engine) is None
    await push(engine, encoder)
    by_vectors = [await ranks(engine, question) for question in QUESTIONS]
    vectors = [await vector_of(engine, question) for question in QUESTIONS]
    assert by_vectors != by_words
    for question, vector, ranked in zip(QUESTIONS, vectors, by_vectors, strict=True):
        assert ranked == await ranks_of_one_index(engine, question, vector)
    await dense.remove(engine)
    assert [await ranks(engine, question) for question in QUESTIONS] == by_words
    assert [record.getMessage() for record in caplog.records if "Embed" in record.getMessage()] == []


async def test_an_explanation_shows_both_parts_and_a_corpus_can_do_without_and_with_again(
    engine: Engine, encoder: Path
) -> None:
    await push(engine, encoder)
    best = (await engine.explain(QUESTIONS[0])).passages[0]
    assert best.why is not None
    assert best.why.cosine is not None
    words = sum(part.body + part.title for part in best.why.terms) + sum(part.score for part in best.why.pairs)
    idf = sum(part.idf for part in best.why.terms)
    assert best.why.near > 0
    assert best.score == best.why.score == pytest.approx(words * words / (2 * idf) + best.why.near)
    with_vectors = await ranks(engine, QUESTIONS[0])
    await engine.catalogue.switch(engine.settings.corpus, "dense", False)
    assert await ranks(engine, QUESTIONS[0]) == await ranks_of_one_index(engine, QUESTIONS[0], None)
    assert await count(engine) is None
    await engine.catalogue.switch(engine.settings.corpus, "dense", True)
    assert await ranks(engine, QUESTIONS[0]) == with_vectors


async def test_a_text_that_changes_loses_its_vector_and_gets_another(engine: Engine, encoder: Path) -> None:
    await push(engine, encoder)
    await dense.remove(engine)
    old = (await hash_of(engine, "mill-Tarn"))[b"vector"]
    await engine.documents.put(Document(id="mill-Tarn", title="mill", text="A brewery has stood in Tarn since 1901."))
    assert (await hash_of(engine, "mill-Tarn"))[b"vector"] == old
    index = await one_index(engine)
    assert sum(index.vectors().values()) == len(TEXTS) - 1
    await push(engine, encoder)
    assert (await hash_of(engine, "mill-Tarn"))[b"vector"] != old


async def test_vectors_of_two_encoders_are_never_compared(engine: Engine, encoder: Path, tmp_path: Path) -> None:
    await push(engine, encoder)
    first = (await vector_of(engine, QUESTIONS[0])).encoder
    await push(engine, write_tiny_encoder(tmp_path / "other", seed=1))
    vector = await vector_of(engine, QUESTIONS[0])
    assert vector.encoder != first
    assert (await one_index(engine)).vectors() == {vector.encoder: len(TEXTS)}
    assert await ranks(engine, QUESTIONS[0]) == await ranks_of_one_index(engine, QUESTIONS[0], vector)


async def test_a_damaged_vector_is_replaced(engine: Engine, encoder: Path) -> None:
    await push(engine, encoder)
    whole = (await hash_of(engine, "inn-Quill"))[b"vector"]

    async def is_mended() -> bool:
        return (await hash_of(engine, "inn-Quill"))[b"vector"] == whole

    for damage in (b"", b"x" * 40, b"\0" * 400):
        await engine.documents.delete(engine.settings.corpus, "inn-Quill")
        await engine.documents.put(Document(id="inn-Quill", title="inn", text=TEXTS["inn-Quill"]))
        await engine.shards.by_key(keys.passage(engine.settings.corpus, "inn-Quill", 0), "HSET", "vector", damage)
        await until(is_mended)


async def test_a_shard_that_lost_its_encoder_gets_it_from_another(engine: Engine, encoder: Path) -> None:
    await push(engine, encoder)
    before = await ranks(engine, QUESTIONS[0])
    shard = (await engine.cluster.shards())[0]
    assert shard.tag is not None
    await engine.shards.by_key(keys.model(keys.ENCODER, shard.tag), "UNLINK")
    assert await ranks(engine, QUESTIONS[0]) == before
    key = keys.model(keys.ENCODER, shard.tag)

    async def is_back() -> bool:
        return bool(await engine.shards.by_key(key, "EXISTS"))

    await until(is_back)


async def test_a_worker_killed_while_it_encodes_goes_on(encoded: LocalCluster, engine: Engine, encoder: Path) -> None:
    await dense.remove(engine)
    await dense.push(engine, encoder)
    for one in encoded.state.nodes:
        with node.connected(one.port) as client:
            kill_worker(client)

    async def all_answer() -> bool:
        return not await engine.cluster.problems()

    await until(all_answer)
    await until_encoded(engine)
    vector = await vector_of(engine, QUESTIONS[0])
    assert await ranks(engine, QUESTIONS[0]) == await ranks_of_one_index(engine, QUESTIONS[0], vector)


async def test_a_passage_deleted_while_it_is_encoded_leaves_nothing(engine: Engine, encoder: Path) -> None:
    await push(engine, encoder)
    for document in list(TEXTS)[:8]:
        await engine.documents.delete(engine.settings.corpus, document)
    assert [await hash_of(engine, document) for document in list(TEXTS)[:8]] == [{}] * 8
