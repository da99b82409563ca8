"""Shards that hold no word of a question are not asked to rank, and are found out where they have got one."""

from collections import Counter
from collections.abc import AsyncIterator
from typing import Any

import pytest

from shardqa.config import Settings
from shardqa.engine import Engine
from shardqa.schema import Document

PLACES = ("Hallow", "Brennick", "Tarn", "Ostby", "Quill", "Merrow", "Ford", "Lund", "Arnsby", "Corvin")
TEXTS = {
    f"{subject}-{place}": f"The {subject} of {place} was finished in {1700 + 7 * n}. It stands by the river."
    for n, place in enumerate(PLACES)
    for subject in ("mill", "bridge")
}


@pytest.fixture
async def filled(engine: Engine) -> Engine:
    """One document has words in its title alone."""
    for name, text in TEXTS.items():
        await engine.documents.put(Document(id=name, text=text))
    await engine.documents.put(
        Document(id="titled", title="The lantern", text="It is of brass and hangs over the door.")
    )
    return engine


@pytest.fixture
async def other(settings: Settings) -> AsyncIterator[Engine]:
    engine = await Engine.connect(settings)
    yield engine
    await engine.close()


async def sent_for(engine: Engine, question: str, monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Counts the triggers that an engine sends to rank the passages of a question."""
    counts, on = Counter[str](), engine.shards.on

    async def count(node: Any, *args: Any, **more: Any) -> Any:
        counts[str(args[1])] += 1
        return await on(node, *args, **more)

    with monkeypatch.context() as patch:
        patch.setattr(engine.shards, "on", count)
        await engine.ranking.rank(engine.question(question), 5)
    return counts


async def test_a_shard_that_holds_no_word_is_not_asked_to_rank(filled: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    assert await sent_for(filled, "Lantern", monkeypatch) == {"Terms": 3, "Rank": 1}, "it stands in a title alone"
    assert await sent_for(filled, "submarine", monkeypatch) == {"Terms": 3}


async def test_a_document_that_comes_to_a_shard_without_its_words_is_found_at_once(
    filled: Engine, other: Engine
) -> None:
    corpus = filled.settings.corpus
    for n in range(12):  # on every shard
        await other.documents.put(Document(id=f"new-{n}", text=f"The zeppelin number {n} flew over the hill."))
        for engine in (filled, other):
            ranked = await engine.ranking.rank(engine.question("Zeppelin", corpus=corpus), 50)
            assert {passage.document for passage in ranked.passages} == {f"new-{m}" for m in range(n + 1)}
            assert ranked.is_settled
