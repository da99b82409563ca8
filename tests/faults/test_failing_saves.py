"""The disk is full or fails at the n-th write of an RDB file, or of a file of large models (MODELS).

The fault is told, nothing half written is to be seen, what was there before stays, and the next attempt succeeds. With
FAULTS=all every n is taken, or sixty of many, else a few.
"""

import asyncio
import errno
import hashlib
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from redis import Redis
from redis.exceptions import ResponseError

from shardqa import keys
from shardqa.engine import Engine
from tests.faults.disk import CORPUS, DOCUMENT, EVERY, MANY, Disk, running_disk, some
from tests.faults.operations import until
from tests.nodes import wait_until
from tests.onnx_models import adder

NO_JOURNAL = (("appendonly", "no"), ("save", ""))  # it starts with dump.rdb
ERRORS = (errno.ENOSPC, errno.EIO)
MODEL = "{disk}:model"
PART = 30  # bytes of a model in one argument, and so in one write


@pytest.fixture(scope="module")
def disk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Disk]:
    folder = tmp_path_factory.mktemp("saves")
    arguments = ("MODELS", str(folder / "models"), "MODEL_FILE_BYTES", "80")
    with running_disk(folder, "/models/|.rdb", extra=NO_JOURNAL, module_arguments=arguments) as found:
        yield found


@pytest.fixture
def redis(disk: Disk) -> Iterator[Redis]:
    with disk.node.client() as client:
        yield client
        disk.shim.heal()


# ---- files of models


def files(disk: Disk) -> set[str]:
    return {path.name for path in (disk.node.folder.parent / "models").iterdir()}


def store(redis: Redis, key: str, blob: bytes) -> None:
    parts = [blob[first : first + PART] for first in range(0, len(blob), PART)]
    assert redis.execute_command("AI.MODELSTORE", key, "ONNX", "CPU", "BLOB", *parts) == b"OK"


def runs(redis: Redis, key: str) -> bool:
    a, b, total = (f"{{disk}}:{name}" for name in ("a", "b", "sum"))
    for name, number in ((a, 1), (b, 2)):
        redis.execute_command("AI.TENSORSET", name, "FLOAT", 1, "BLOB", np.float32(number).tobytes())
    redis.execute_command("AI.MODELEXECUTE", key, "INPUTS", 2, a, b, "OUTPUTS", 1, total)
    return bool(redis.execute_command("AI.TENSORGET", total, "BLOB") == np.float32(3).tobytes())


@pytest.mark.parametrize("error", ERRORS, ids=errno.errorcode.get)
def test_a_model_whose_file_can_not_be_written_is_kept_in_memory_and_the_next_one_in_its_file(
    disk: Disk, redis: Redis, error: int
) -> None:
    others, blob = files(disk), adder()
    before = disk.shim.count(names=True)
    store(redis, MODEL, blob)
    writes = disk.shim.writes - before
    assert writes > len(blob) // PART  # the parts, and the name
    assert len(files(disk) - others) == 1
    for number in range(1, writes + 1):
        redis.delete(MODEL)
        wait_until(lambda: files(disk) == others, "its file is gone")
        lines = disk.node.log.count("a model is kept in memory")
        disk.shim.fail(number, error, times=10**6, names=True)
        store(redis, MODEL, blob)
        assert files(disk) == others
        assert redis.execute_command("AI.MODELGET", MODEL, "BLOB") == blob
        assert runs(redis, MODEL)
        assert disk.node.log.count("a model is kept in memory") > lines
        assert os.strerror(error) in disk.node.log
        disk.shim.heal()
        store(redis, MODEL, blob)
        assert len(files(disk) - others) == 1
        assert runs(redis, MODEL)
    redis.delete(MODEL)
    wait_until(lambda: files(disk) == others, "its file is gone")


# ---- RDB


def save(redis: Redis) -> bool:
    try:
        return bool(redis.save())
    except ResponseError:
        return False


def save_beside(redis: Redis) -> bool:
    redis.bgsave()
    wait_until(lambda: not redis.info("persistence")["rdb_bgsave_in_progress"], "the save ended")
    return bool(redis.info("persistence")["rdb_last_bgsave_status"] == "ok")


def digest(disk: Disk) -> str:
    return hashlib.sha256((disk.node.folder / "dump.rdb").read_bytes()).hexdigest()


def unfinished(folder: Path) -> list[Path]:
    return list(folder.glob("temp-*"))


@pytest.mark.parametrize("way", [save_beside, save] if EVERY else [save_beside], ids=["BGSAVE", "SAVE"][: 1 + EVERY])
async def test_a_save_that_fails_at_any_write_leaves_the_last_one_which_is_read(
    disk: Disk, redis: Redis, way: Callable[[Redis], bool]
) -> None:
    engine = await Engine.connect(disk.settings())
    await until(lambda: disk.put(engine), "a document is taken")
    before = disk.shim.count(syncs=True, names=True)
    assert await asyncio.to_thread(way, redis)
    writes, saved, last = disk.shim.writes - before, disk.version, digest(disk)
    assert writes > MANY
    await disk.put(engine)
    for turn, number in enumerate(some(writes)):
        disk.shim.fail(number, ERRORS[turn % 2], times=10**6, syncs=True, names=True)
        if await asyncio.to_thread(way, redis):  # rankings have expired, and it had fewer writes
            assert not disk.shim.failed, f"write {number} of {writes} failed"
            saved, last = disk.version, digest(disk)
        assert digest(disk) == last
        assert not unfinished(disk.node.folder)
        await disk.holds(engine)
        disk.shim.heal()
        if EVERY and turn % 10 == 5:
            assert await asyncio.to_thread(way, redis)
            saved, last = disk.version, digest(disk)
            await disk.put(engine)
    await asyncio.to_thread(disk.node.restart, signal.SIGKILL)
    disk.acknowledged = disk.version = saved  # what came later was in memory alone
    await until(lambda: disk.holds(engine), "what was saved is answered")
    assert redis.hget(keys.doc(CORPUS, DOCUMENT), "digest")
    await disk.put(engine)
    assert await asyncio.to_thread(way, redis)
    await engine.close()
