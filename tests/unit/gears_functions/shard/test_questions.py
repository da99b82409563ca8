"""Work in the background begins once nothing is asked, and does not wait for ever."""

import asyncio
from time import monotonic
from typing import Any

from shardqa.gears_functions.shard.questions import ActiveQuestions


async def test_what_runs_in_the_background_waits_until_the_question_is_answered() -> None:
    questions, end, order = ActiveQuestions(), asyncio.Event(), list[str]()

    async def answer(record: Any) -> None:
        await end.wait()
        order.append("answered")

    async def encode() -> None:
        await questions.quiet(0.002, 60)
        order.append("encoded")

    answering: asyncio.Future[Any] = asyncio.ensure_future(questions.counted(answer)(None))
    await asyncio.sleep(0)
    encoding = asyncio.create_task(encode())
    await asyncio.sleep(0.05)
    end.set()
    await asyncio.gather(answering, encoding)
    assert order == ["answered", "encoded"]


async def test_a_question_that_fails_is_over() -> None:
    questions = ActiveQuestions()

    async def fail(record: Any) -> None:
        raise ValueError("no answer")

    await asyncio.gather(questions.counted(fail)(None), return_exceptions=True)
    await asyncio.wait_for(questions.quiet(0.002, 3_600), 60)


async def test_patience_has_an_end_where_questions_have_none() -> None:
    questions = ActiveQuestions()
    endless: asyncio.Future[Any] = asyncio.ensure_future(questions.counted(lambda _: asyncio.sleep(3_600))(None))
    await asyncio.sleep(0)
    start = monotonic()
    await asyncio.wait_for(questions.quiet(0.002, 0.02), 60)
    assert monotonic() - start >= 0.02 * 0.9
    endless.cancel()


async def test_without_questions_nothing_waits() -> None:
    await asyncio.wait_for(ActiveQuestions().quiet(0.002, 3_600), 60)
