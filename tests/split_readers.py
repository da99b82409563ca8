"""A small split reader for tests, random and untrained, and shards that have it. Needs onnx."""

import asyncio
import json
import shutil
from pathlib import Path
from typing import Any

from shardqa.cluster.local import LocalCluster
from shardqa.engine import Engine
from shardqa.loader import push
from shardqa.models import shipped
from tests.cluster.shards_client import Shards
from tests.nodes import settings_of, wait_until
from tests.unit import tiny

NAME = "split-reader"
QUESTION = "When was the mill at Hallow Ford built?"
MILL = "The mill at Hallow Ford was built in 1742 by the brothers Anders and Jon Lindqvist. It ground rye until 1911."
OTHERS = tuple(f"The mill at Hallow Ford had the miller number {n}, who was born in {1700 + n}." for n in range(4))
K = 5  # passages of a question; one of each document
LITTLE = 5_000  # bytes, of three passages or four
NUMBERS = ("kept", "bytes", "limit", "hits", "misses", "evictions")


def made(folder: Path) -> Path:
    """Its two lowest layers see question and passage apart."""
    from shardqa.models.toolchain.conversion.export import export

    checkpoint = tiny.checkpoint(folder / "checkpoint", layers=3)
    config = json.loads((checkpoint / "config.json").read_text())
    (checkpoint / "config.json").write_text(json.dumps({**config, "split_layers": 2}))
    shutil.copyfile(shipped.folder() / "scoring.json", checkpoint / "scoring.json")
    export(checkpoint, folder / "reader")
    return folder / "reader"


def pushed(cluster: LocalCluster, reader: Path) -> LocalCluster:
    async def run() -> None:
        engine = await Engine.connect(settings_of(cluster, timeout=60))
        try:
            await push.push(engine, reader, NAME)
        finally:
            await engine.close()

    asyncio.run(run())
    return cluster


def ingest(shards: Shards) -> None:
    for number, text in enumerate((MILL, *OTHERS)):
        shards.ingest(f"d{number}", text)


def answer(shards: Shards) -> Any:
    """What the reader finds now, without times and without what was found before."""
    key = shards.answer_key("d0", QUESTION, K, NAME)
    shards.client.delete(key)
    reply = json.loads(shards.client.get(key))
    assert not reply["cached"]
    wait_until(lambda: shards.client.exists(key), "the answer is stored, so that the next call can remove it")
    assert reply["model"] == NAME
    assert len(reply["spans"]) > 1
    return {name: value for name, value in reply.items() if name not in ("us", "cached")}


def told(shards: Shards, *names: str) -> dict[str, int]:
    """What INFO says of states now."""
    info = shards.redis(shards.doc("d0")).info("shardqa")
    return {name: int(info.get(f"shardqa_states_{name}", 0)) for name in names}


def states(shards: Shards, hits_and_misses: int) -> dict[str, int]:
    """The same, once so many passages were asked for since the worker began."""

    def all_told() -> dict[str, int] | None:
        found = told(shards, *NUMBERS)
        return found if found["hits"] + found["misses"] == hits_and_misses else None

    return dict(wait_until(all_told, "INFO tells of all passages"))
