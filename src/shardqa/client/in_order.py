"""Several questions under way at once, their answers in the order of the questions."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from shardqa.schema import Answer


def answers_in_order(ask: Callable[[str], Answer], questions: Iterable[str], concurrency: int) -> Iterator[Answer]:
    """Asks on `concurrency` threads, at most as many answers ahead of the one that is read next."""
    waiting = deque[Future[Answer]]()
    with ThreadPoolExecutor(concurrency) as threads:
        try:
            for question in questions:
                waiting.append(threads.submit(ask, question))
                if len(waiting) == 2 * concurrency:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for answer in waiting:
                answer.cancel()


async def answers_in_order_async(
    ask: Callable[[str], Coroutine[Any, Any, Answer]], questions: Iterable[str], concurrency: int
) -> AsyncIterator[Answer]:
    """Asks `concurrency` questions at once."""
    waiting = deque[asyncio.Task[Answer]]()
    try:
        for question in questions:
            waiting.append(asyncio.create_task(ask(question)))
            if len(waiting) == concurrency:
                yield await waiting.popleft()
        while waiting:
            yield await waiting.popleft()
    finally:
        for answer in waiting:
            answer.cancel()
