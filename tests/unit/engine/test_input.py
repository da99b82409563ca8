"""The engine refuses questions and documents that are none before it asks any shard."""

import asyncio
from collections.abc import Collection
from typing import Any

import pytest

from shardqa.checks import MAX_DOCUMENT, MAX_QUESTION
from shardqa.config import Settings
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
    ("words", "fault", "text"),
    [
        ({"question": ""}, EmptyQuestion, "has no words"),
        ({"question": " ?! "}, EmptyQuestion, "has no words"),
        ({"question": "who \ud800"}, BadQuestion, "lone surrogate"),
        ({"question": "x" * (MAX_QUESTION + 1)}, QuestionTooLong, f"more than {MAX_QUESTION:,}"),
        ({"question": "x" * 1_000_000}, QuestionTooLong, f"more than {MAX_QUESTION:,}"),
        ({"k": 0}, BadLimit, "1 to 100"),
        ({"k": -1}, BadLimit, "1 to 100"),
        ({"k": 101}, BadLimit, "1 to 100"),
        ({"n_best": 0}, BadLimit, "1 to 20"),
        ({"n_best": 21}, BadLimit, "1 to 20"),
        ({"min_score": -0.1}, BadLimit, "probability"),
        ({"min_score": 1.1}, BadLimit, "probability"),
        ({"min_score": float("nan")}, BadLimit, "probability"),
        ({"corpus": "Not A Name"}, BadCorpusName, "not of the form"),
    ],
)
async def test_a_question_that_is_none_is_refused(
    engine: Engine, words: dict[str, Any], fault: type[ShardqaError], text: str
) -> None:
    with pytest.raises(fault, match=text):
        await engine.ask(**{"question": "who", **words})


@pytest.mark.parametrize(
    ("field", "fault", "text"),
    [
        ({"text": ""}, BadDocument, "no text"),
        ({"text": " \n\t"}, BadDocument, "no text"),
        ({"text": "a\ud800"}, BadDocument, "lone surrogate at character 1"),
        ({"text": "é" * (MAX_DOCUMENT // 2 + 1)}, DocumentTooLarge, f"{MAX_DOCUMENT:,}"),
        ({"title": "\ud800"}, BadDocument, "lone surrogate at character"),
        ({"source": "\udce9.txt"}, BadDocument, "lone surrogate at character"),
        ({"metadata": {"by": "\ud800"}}, BadDocument, "lone surrogate at character"),
        ({"metadata": {"\ud800": 1}}, BadDocument, "lone surrogate at character"),
    ],
)
async def test_a_document_that_is_none_is_refused(
    engine: Engine, field: dict[str, Any], fault: type[ShardqaError], text: str
) -> None:
    with pytest.raises(fault, match=text):
        await engine.documents.put(Document(**{"id": "d", "text": "t", **field}))


async def test_a_question_takes_no_longer_than_its_settings_allow() -> None:
    engine = Engine(Settings(timeout=0.01), NeverAnswering())
    with pytest.raises(AnswerTimeout, match=r"0\.01 s"):
        await engine.ask("who")
