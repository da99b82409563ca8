"""Coroutines that run together end together."""

import asyncio

import pytest

from shardqa.loader.tasks import run_all


async def test_all_run_to_their_end() -> None:
    numbers = []

    async def note(n: int) -> None:
        await asyncio.sleep(0)
        numbers.append(n)

    await run_all(note(n) for n in range(3))
    assert sorted(numbers) == [0, 1, 2]


async def test_nothing_together_is_done_at_once() -> None:
    await run_all([])


async def test_a_failure_ends_even_a_task_that_swallows_its_cancellation() -> None:
    end = asyncio.Event()

    async def stubborn() -> None:
        for _ in range(3):
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                continue
        end.set()

    async def fails() -> None:
        await asyncio.sleep(0)
        raise KeyError("first")

    with pytest.raises(KeyError, match="first"):
        await run_all([stubborn(), fails()])
    assert end.is_set()


async def test_a_cancelled_caller_leaves_no_task_behind() -> None:
    before = asyncio.all_tasks()
    running = asyncio.create_task(run_all([asyncio.sleep(60), asyncio.sleep(60)]))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert asyncio.all_tasks() == before
