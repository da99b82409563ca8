"""Turns that a thread takes at once, or not at all."""

import asyncio

from shardqa.worker.gears.pipeline.turns import Turns


async def test_a_turn_is_taken_at_once_while_one_is_free() -> None:
    turns = Turns(2)
    assert [turns.take_now() for _ in range(3)] == [True, True, False]
    turns.give()
    assert turns.take_now()


async def test_a_turn_that_is_given_goes_to_the_next_who_waits() -> None:
    turns = Turns(1)
    assert turns.take_now()
    waiting = asyncio.create_task(turns.__aenter__())
    await asyncio.sleep(0)
    turns.give()
    assert not turns.take_now()
    await waiting
