"""Memory of terms saves a question its first round, and the second on shards that hold none of its words."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from typing import Any

import pytest

from shardqa import keys
from shardqa.config import Settings
from shardqa.engine import Engine
from shardqa.engine.term_memory import TermMemory
from shardqa.schema import Document

PLACES = ("Hallow", "Brennick", "Tarn", "Ostby", "Quill", "Merrow", "Ford", "Lund", "Arnsby", "Corvin")
TEXTS = {
    f"{subject}-{place}": f"The {subject} of {place} was finished in {1700 + 7 * n}. It stands by the river."
    for n, place in enumerate(PLACES)
    for subject in ("mill", "bridge")
}
QUESTIONS = (
    "Which mill stands in Ostby?",
    "What was finished near the Quill bridge?",
    "Which bridge stands in Ostby?",
    "river",
    "Who owns the zeppelin?",
    "Lantern",
)


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
async def forgetful(settings: Settings) -> AsyncIterator[Engine]:
    engine = await Engine.connect(settings)
    engine.ranking.memory = TermMemory(0)
    yield engine
    await engine.close()


async def sent_for(engine: Engine, question: str, monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Triggers that an engine sends to rank the passages of a question."""
    sent, on = Counter[str](), engine.shards.on

    async def count(node: Any, *args: Any, **more: Any) -> Any:
        sent[str(args[1])] += 1
        return await on(node, *args, **more)

    with monkeypatch.context() as patch:
        patch.setattr(engine.shards, "on", count)
        await engine.ranking.rank(engine.question(question), 5)
    return sent


async def until_sent(engine: Engine, question: str, expected: dict[str, int], monkeypatch: pytest.MonkeyPatch) -> None:
    """Asks again and again, bounded: the subscription may begin late, and end where the machine is busy."""
    for _ in range(100):
        if (sent := await sent_for(engine, question, monkeypatch)) == Counter(expected):
            return
        await asyncio.sleep(0.1)
    pytest.fail(f"{question!r} took {sent}, not {expected}")


def holders(engine: Engine, *documents: str) -> int:
    """Shards of these documents."""
    corpus = engine.settings.corpus
    return len({engine.shards.owner(keys.doc(corpus, document)).name for document in documents})


async def test_a_new_question_of_known_words_takes_one_round(filled: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    for known in ("Quill Merrow", "the Ostby mill"):
        await filled.ranking.rank(filled.question(known), 5)
    await until_sent(filled, "Merrow?", {"Rank": 3}, monkeypatch)
    await until_sent(filled, "zeppelin", {"Rank": 3}, monkeypatch)
    sent = await sent_for(filled, "Quill submarine", monkeypatch)
    assert sent["Terms"] == 3


async def test_a_shard_that_has_just_said_that_it_holds_no_word_is_not_asked_to_rank(
    filled: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent = await sent_for(filled, "Lantern", monkeypatch)  # in a title alone
    assert sent == {"Terms": 3, "Rank": 1}
    assert await sent_for(filled, "submarine", monkeypatch) == {"Terms": 3}


async def test_a_changed_shard_alone_is_asked_again(filled: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    await until_sent(filled, "Quill", {"Rank": 3}, monkeypatch)
    await filled.documents.put(Document(id="mill-Quill", text="The mill of Quill burnt down."))
    sent = await sent_for(filled, "Quill", monkeypatch)
    assert sent["Terms"] in (1, 3)  # 3 where the subscription ended meanwhile


async def test_ranks_are_the_same_with_and_without_memory(filled: Engine, forgetful: Engine) -> None:
    corpus = filled.settings.corpus
    for question in (*QUESTIONS, *QUESTIONS):
        anew = await forgetful.ranking.rank(forgetful.question(question, corpus=corpus), 50)
        remembered = await filled.ranking.rank(filled.question(question, corpus=corpus), 50)
        assert remembered.passages == anew.passages
        assert remembered.epochs == anew.epochs
        assert remembered.is_settled


async def test_a_document_that_comes_to_a_shard_without_its_words_is_found_at_once(
    filled: Engine, forgetful: Engine
) -> None:
    corpus = filled.settings.corpus
    for n in range(12):  # on every shard
        for engine in (filled, forgetful):
            await engine.ranking.rank(engine.question("zeppelin mill", corpus=corpus), 50)
        await forgetful.documents.put(Document(id=f"new-{n}", text=f"The zeppelin number {n} flew over the hill."))
        for engine in (filled, forgetful):  # to the first it is another process' change
            ranked = await engine.ranking.rank(engine.question("Zeppelin", corpus=corpus), 50)
            assert {passage.document for passage in ranked.passages} == {f"new-{m}" for m in range(n + 1)}


async def test_a_change_that_was_not_announced_is_seen_by_the_epochs_that_rank_tells(
    filled: Engine, forgetful: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    await until_sent(filled, "Ostby", {"Rank": 3}, monkeypatch)
    monkeypatch.setattr(filled.epochs, "_hear", lambda message: None)
    for n in range(6):
        await forgetful.documents.put(
            Document(id=f"fire-{n}", text=f"The mill of Ostby burnt down in 19{n}0, as did all of Ostby.")
        )
        question = filled.question("Ostby")
        remembered, anew = await filled.ranking.rank(question, 50), await forgetful.ranking.rank(question, 50)
        assert remembered.passages == anew.passages
        assert remembered.is_settled


async def test_fresh_questions_ask_every_shard(filled: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    await until_sent(filled, "Quill", {"Rank": 3}, monkeypatch)
    terms = await filled.ranking.terms(filled.question("quill"), anew=True)
    assert not terms.is_remembered
    assert len(terms.epochs) == 3
