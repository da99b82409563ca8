"""The disk is full or fails at the n-th write, the clock jumps: answers stay right, nothing acknowledged is lost.

With FAULTS=all every n is taken, or sixty of many, else a few. With `appendfsync everysec` only writes fail: after a
failed fsync Redis 7.0 refuses all writes until it has synced some, and so for good.
"""

import asyncio
import errno
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress

import pytest
from redis.exceptions import ResponseError

from shardqa.engine import Engine
from shardqa.errors import ShardqaError
from tests.faults import documents
from tests.faults.disk import CORPUS, DOCUMENT, MANY, Disk, running_disk, some
from tests.faults.operations import until
from tests.nodes import wait_until

DAY = 86_400
ERRORS = (errno.ENOSPC, errno.EIO)


@pytest.fixture(scope="module")
def disk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Disk]:
    folder = tmp_path_factory.mktemp("disk")
    with running_disk(folder, ".aof", extra=(("auto-aof-rewrite-percentage", "0"),)) as found:
        yield found


@pytest.fixture
async def engine(disk: Disk) -> AsyncIterator[Engine]:
    engine = await Engine.connect(disk.settings())
    await until(lambda: disk.put(engine), "a document is taken")
    yield engine
    await engine.close()


async def killed(disk: Disk) -> None:
    await asyncio.to_thread(wait_until, disk.is_written, "the file is written")
    await asyncio.to_thread(disk.node.restart, signal.SIGKILL)


@pytest.mark.parametrize("error", ERRORS, ids=errno.errorcode.get)
async def test_while_the_append_only_file_can_not_be_written_questions_are_answered_and_nothing_is_lost(
    disk: Disk, engine: Engine, error: int
) -> None:
    before = disk.shim.writes
    await disk.put(engine)
    await disk.holds(engine)
    for number in some(disk.shim.writes - before):
        disk.shim.fail(number, error, times=10**6)
        with suppress(ShardqaError):
            await disk.put(engine)
        await disk.holds(engine)
        disk.shim.heal()
        await until(lambda: disk.put(engine), f"documents are taken again after write {number} failed")
        await disk.holds(engine)
    await killed(disk)
    await until(lambda: disk.holds(engine), "all is there after a restart")


async def test_a_rewrite_of_the_append_only_file_that_fails_at_any_write_loses_nothing(
    disk: Disk, engine: Engine
) -> None:
    before = disk.shim.writes
    await rewrite(disk)
    assert disk.info("aof_last_bgrewrite_status") == "ok"
    writes = disk.shim.writes - before - 1
    assert writes > MANY
    for number in some(writes):
        disk.shim.fail(number, errno.ENOSPC, times=10**6)
        await rewrite(disk)
        await disk.holds(engine)
        disk.shim.heal()
        await until(lambda: disk.put(engine), f"documents are taken again after write {number} failed")
    await killed(disk)
    await until(lambda: disk.holds(engine), "all is there after a restart")


async def rewrite(disk: Disk) -> None:
    with disk.node.client() as client, suppress(ResponseError):  # the first writes of it are the node's own
        client.bgrewriteaof()
    await asyncio.to_thread(wait_until, lambda: not disk.info("aof_rewrite_in_progress"), "the rewrite ended")


async def test_a_node_that_must_not_lose_a_write_ends_where_it_can_not_be_written(disk: Disk, engine: Engine) -> None:
    with disk.node.client() as client:
        client.config_set("appendfsync", "always")
    for number, error in ((1, errno.ENOSPC), (2, errno.EIO)):
        disk.shim.fail(number, error, times=10**6, syncs=True)
        with suppress(ShardqaError):
            await disk.put(engine)
        await asyncio.to_thread(disk.node.ended)
        disk.shim.heal()
        await asyncio.to_thread(disk.node.restart, signal.SIGKILL)
        await until(lambda: disk.holds(engine), "all is there after a restart")
        with disk.node.client() as client:
            client.config_set("appendfsync", "always")


@pytest.mark.parametrize("seconds", [DAY, -DAY, 365 * DAY], ids=["a day on", "a day back", "a year on"])
async def test_when_the_clock_jumps_what_is_written_is_found_and_no_older_answer_comes_back(
    disk: Disk, engine: Engine, seconds: int
) -> None:
    try:
        epochs = [(await engine.ranking.rank(engine.question("mill", corpus=CORPUS), 1)).epochs]
        for jump in (seconds, 0):
            disk.shim.step_clock(jump)
            for _ in range(2):
                await disk.put(engine)
                question = documents.questions(DOCUMENT, disk.version)[0]
                assert (await engine.ask(question.text)).answer == question.answer
                epochs.append((await engine.ranking.rank(engine.question("mill", corpus=CORPUS), 1)).epochs)
        numbers = [epoch for one in epochs for epoch in one.values()]
        assert numbers == sorted(set(numbers))
    finally:
        disk.shim.step_clock(0)
