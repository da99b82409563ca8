"""What the engine refuses before it asks any shard."""

import asyncio
from collections.abc import Collection
from typing import Any

import pytest

from shardqa.config import MAX_DOCUMENT, MAX_QUESTION, Settings
from shardqa.engine import Engine
from shardqa.engine.connections import Argument, Reply, Shards
from shardqa.errors import (
    AnswerTimeout,
    BadCorpusName,
    BadDocument,
    BadLimit,
    BadQuestion,
    DocumentTooLarge,
    EmptyQuestion,
    QuestionTooLong,
    ShardqaError,
)
from shardqa.schema import Document


class NoShards(Shards):
    """Fails the test that reaches the network."""

    def __init__(self) -> None: ...


class NeverAnswering(NoShards):
    """Shards that take each command and stay silent."""

    async def everywhere(self, *args: Argument, but: Collection[str] = ()) -> list[Reply]:
        await asyncio.Event().wait()
        return []

    async def by_key(self, key: str, command: str, *args: Argument) -> None:
        await asyncio.Event().wait()


@pytest.fixture
def engine() -> Engine:
    return Engine(Settings(), NoShards())


@pytest.mark.parametrize(
    ("question", "fault"),
    [
        ("", EmptyQuestion),
        (" ?! ", EmptyQuestion),
        ("who \ud800", BadQuestion),
        ("x" * (MAX_QUESTION + 1), QuestionTooLong),
        ("x" * 1_000_000, QuestionTooLong),
    ],
)
async def test_a_question_that_is_none_is_refused(engine: Engine, question: str, fault: type[ShardqaError]) -> None:
    with pytest.raises(fault):
        await engine.ask(question)


@pytest.mark.parametrize("k", [0, -1, 101, 10_000])
async def test_k_outside_its_range_is_refused_with_the_range(engine: Engine, k: int) -> None:
    with pytest.raises(BadLimit, match="1 to 100"):
        await engine.ask("who", k=k)


@pytest.mark.parametrize("min_score", [-0.1, 1.1, float("nan")])
async def test_a_min_score_that_is_no_probability_is_refused(engine: Engine, min_score: float) -> None:
    with pytest.raises(BadLimit, match="probability"):
        await engine.ask("who", min_score=min_score)


async def test_a_bad_corpus_name_is_refused(engine: Engine) -> None:
    with pytest.raises(BadCorpusName):
        await engine.ask("who", corpus="Not A Name")


@pytest.mark.parametrize("text", ["", " \n\t", "a\ud800"])
async def test_a_document_without_text_is_refused(engine: Engine, text: str) -> None:
    with pytest.raises(BadDocument):
        await engine.documents.put(Document(id="d", text=text))


async def test_a_document_past_the_bound_is_refused_with_both_sizes(engine: Engine) -> None:
    with pytest.raises(DocumentTooLarge, match=f"{MAX_DOCUMENT:,}"):
        await engine.documents.put(Document(id="d", text="é" * (MAX_DOCUMENT // 2 + 1)))


@pytest.mark.parametrize(
    "field",
    [{"title": "\ud800"}, {"source": "\udce9.txt"}, {"metadata": {"by": "\ud800"}}, {"metadata": {"\ud800": 1}}],
)
async def test_a_document_with_half_a_character_anywhere_is_refused(engine: Engine, field: dict[str, Any]) -> None:
    with pytest.raises(BadDocument, match="lone surrogate at character"):
        await engine.documents.put(Document(id="d", text="t", **field))


async def test_a_question_takes_no_longer_than_its_settings_allow() -> None:
    engine = Engine(Settings(timeout=0.01), NeverAnswering())
    with pytest.raises(AnswerTimeout, match=r"0\.01 s"):
        await engine.ask("who")
