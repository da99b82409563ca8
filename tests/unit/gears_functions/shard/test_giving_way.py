"""A long text on its way in gives way to questions; a short one is in at once."""

import asyncio
from typing import Any, cast

import pytest

from shardqa.gears_functions.document_hash import Fields
from shardqa.gears_functions.shard import document_writer
from shardqa.gears_functions.shard.document_writer import DocumentWriter
from shardqa.gears_functions.shard.pairs import Pair
from shardqa.gears_functions.shard.questions import ActiveQuestions
from shardqa.models import shipped
from shardqa.models.tokenizer import Tokenizer

PAIR = Pair(Tokenizer.load(shipped.folder()))
LONG = "The mill ground rye. " * 2_000  # more than a block


class Quiet:
    """The runtime, as far as cutting needs it."""

    def progress(self) -> None:
        """Told after each slice."""


@pytest.fixture
def questions() -> ActiveQuestions:
    return ActiveQuestions()


@pytest.fixture
def writer(questions: ActiveQuestions) -> DocumentWriter:
    others = cast(Any, None)
    return DocumentWriter(cast(Any, Quiet()), others, others, others, others, questions)


async def test_a_long_text_is_cut_on_once_the_question_is_answered(
    questions: ActiveQuestions, writer: DocumentWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(document_writer, "PATIENCE", 3_600)
    end = asyncio.Event()
    question: asyncio.Future[Any] = asyncio.ensure_future(questions.counted(lambda _: end.wait())(None))
    await asyncio.sleep(0)
    assert len(await writer.split(Fields("", "The mill ground rye.", "", ""), PAIR)) == 1
    cutting = asyncio.create_task(writer.split(Fields("", LONG, "", ""), PAIR))
    done, _ = await asyncio.wait([cutting], timeout=0.5)
    assert not done
    end.set()
    assert len(await cutting) > 1
    await question


async def test_a_long_text_does_not_wait_for_questions_without_end(
    questions: ActiveQuestions, writer: DocumentWriter
) -> None:
    endless: asyncio.Future[Any] = asyncio.ensure_future(questions.counted(lambda _: asyncio.sleep(3_600))(None))
    await asyncio.sleep(0)
    assert len(await asyncio.wait_for(writer.split(Fields("", LONG, "", ""), PAIR), 60)) > 1
    endless.cancel()
