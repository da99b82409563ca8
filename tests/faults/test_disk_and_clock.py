"""The disk is full or fails at the n-th write, the clock jumps: answers stay right, nothing acknowledged is lost.

One node under a preloaded shim (shim.c). With FAULTS=all every n is taken, else a few. With `appendfsync everysec` only
writes fail: after a failed fsync Redis 7.0 refuses all writes until it has synced some, and so for good.
"""

import asyncio
import errno
import os
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from redis.exceptions import ResponseError

from shardqa.config import Settings
from shardqa.engine import Engine
from shardqa.errors import ShardqaError
from shardqa.loader import preparation
from shardqa.schema import Document
from tests.faults import documents
from tests.faults.shim import Shim, build, environment
from tests.nodes import Node, wait_until

DOCUMENT = "mill of Arnsby"
CORPUS = "disk"
DAY = 86_400
EVERY = os.environ.get("FAULTS") == "all"
ERRORS = (errno.ENOSPC, errno.EIO)
SECONDS = 30.0


class Disk:
    """A node, its shim, and what was acknowledged."""

    def __init__(self, folder: Path, shim: Shim) -> None:
        self.shim = shim
        worker = shim.python(folder / "python", sys.executable)
        self.node = Node(
            folder / "node",
            environment=environment(shim),
            cluster=True,
            python=worker,
            extra=(("auto-aof-rewrite-percentage", "0"),),
        )
        self.version = 0
        self.acknowledged = 0  # the latest version that was

    def start(self) -> None:
        self.node.start()
        with self.node.client() as client:
            client.execute_command("CLUSTER", "ADDSLOTSRANGE", 0, 16383)
            wait_until(lambda: b"cluster_state:ok" in client.execute_command("CLUSTER", "INFO"), "the slots are served")
        asyncio.run(self._prepare())

    async def _prepare(self) -> None:
        engine = await Engine.connect(self.settings())
        try:
            await preparation.prepare(engine)
        finally:
            await engine.close()

    def settings(self) -> Settings:
        return Settings(redis=f"127.0.0.1:{self.node.port}", corpus=CORPUS, timeout=30)

    def info(self, name: str) -> Any:
        with self.node.client() as client:
            return client.info("persistence")[name]

    async def put(self, engine: Engine) -> None:
        self.version += 1
        text = documents.text(DOCUMENT, self.version)
        await engine.put(Document(id=DOCUMENT, title=DOCUMENT, text=text))
        self.acknowledged = self.version

    async def holds(self, engine: Engine) -> None:
        """Raises AssertionError: what is there is the last acknowledged version or a later one, and is answered."""
        found = await engine.get(CORPUS, DOCUMENT)
        assert found is not None
        texts = {documents.text(DOCUMENT, version): version for version in range(self.acknowledged, self.version + 1)}
        assert found.text in texts, found.text
        question = documents.questions(DOCUMENT, texts[found.text])[0]
        answer = await engine.ask(f"{question.text} {self.shim.writes}", fresh=True)
        assert answer.answer == question.answer


@pytest.fixture(scope="module")
def disk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Disk]:
    folder = tmp_path_factory.mktemp("disk")
    found = Disk(folder, Shim(folder, build(folder), ".aof"))
    found.start()
    yield found
    found.shim.heal()
    found.node.stop()


@pytest.fixture
async def engine(disk: Disk) -> AsyncIterator[Engine]:
    engine = await Engine.connect(disk.settings())
    await until(lambda: disk.put(engine), "a document is taken")
    yield engine
    await engine.close()


async def until(done: Callable[[], Awaitable[object]], what: str) -> None:
    met = ""
    for _ in range(int(SECONDS / 0.05)):
        try:
            await done()
            return
        except (ShardqaError, AssertionError) as fault:
            met = f"{type(fault).__name__}: {fault}"
        await asyncio.sleep(0.05)
    pytest.fail(f"{what}: waited in vain, last met {met}")


async def restarted(disk: Disk, how: int) -> None:
    await asyncio.to_thread(disk.node.restart, how)


def some(count: int) -> list[int]:
    """Numbers of writes to fail, of so many."""
    return list(range(1, count + 1)) if EVERY else sorted({1, 2, max(count // 2, 1), max(count, 1)})


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
    wait_until(lambda: disk.info("aof_last_write_status") == "ok", "the file is written")
    await restarted(disk, signal.SIGKILL)
    await until(lambda: disk.holds(engine), "all is there after a restart")


async def test_a_rewrite_of_the_append_only_file_that_fails_at_any_write_loses_nothing(
    disk: Disk, engine: Engine
) -> None:
    before = disk.shim.writes
    await rewrite(disk)
    assert disk.info("aof_last_bgrewrite_status") == "ok"
    for number in some(disk.shim.writes - before - 1):
        disk.shim.fail(number, errno.ENOSPC, times=10**6)
        await rewrite(disk)
        await disk.holds(engine)
        disk.shim.heal()
        await until(lambda: disk.put(engine), f"documents are taken again after write {number} failed")
    await restarted(disk, signal.SIGKILL)
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
        await restarted(disk, signal.SIGKILL)
        await until(lambda: disk.holds(engine), "all is there after a restart")
        with disk.node.client() as client:
            client.config_set("appendfsync", "always")


@pytest.mark.parametrize("seconds", [DAY, -DAY, 365 * DAY], ids=["a day on", "a day back", "a year on"])
async def test_when_the_clock_jumps_what_is_written_is_found_and_no_older_answer_comes_back(
    disk: Disk, engine: Engine, seconds: int
) -> None:
    try:
        epochs = [(await engine.rank("mill", CORPUS, 1)).epochs]
        for jump in (seconds, 0):
            disk.shim.step_clock(jump)
            for _ in range(2):
                await disk.put(engine)
                question = documents.questions(DOCUMENT, disk.version)[0]
                assert (await engine.ask(question.text)).answer == question.answer
                epochs.append((await engine.rank("mill", CORPUS, 1)).epochs)
        numbers = [epoch for one in epochs for epoch in one.values()]
        assert numbers == sorted(set(numbers))
    finally:
        disk.shim.step_clock(0)
