"""A split reader on a cluster: what is kept of passages changes no answer, nor do its loss, its bound or its end."""

import asyncio
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from shardqa import keys
from shardqa.cluster.local import LocalCluster
from shardqa.engine import Engine
from shardqa.loader import push
from shardqa.models import shipped
from tests.cluster.shards_client import Shards
from tests.nodes import settings_of, wait_until
from tests.unit import tiny
from tests.workers import kill_worker, ready_worker

pytest.importorskip("onnx", reason="the split reader of these tests is made with onnx")

NAME = "split-reader"
QUESTION = "When was the mill at Hallow Ford built?"
MILL = "The mill at Hallow Ford was built in 1742 by the brothers Anders and Jon Lindqvist. It ground rye until 1911."
OTHERS = tuple(f"The mill at Hallow Ford had the miller number {n}, who was born in {1700 + n}." for n in range(4))
K = 5  # passages of a question; one of each document
LITTLE = 5_000  # bytes, of three passages or four
Start = Callable[..., LocalCluster]
Connect = Callable[[LocalCluster], Shards]


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small random reader whose two lowest layers see question and passage apart."""
    from shardqa.models.toolchain.conversion.export import export

    folder = tmp_path_factory.mktemp("split")
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


@pytest.fixture(scope="module")
def keeping(start_cluster: Start, reader: Path) -> LocalCluster:
    """A shard that keeps what there is."""
    return pushed(start_cluster(shards=1), reader)


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


def states(shards: Shards, hits_and_misses: int) -> dict[str, int]:
    """What INFO says of kept states, once so many passages were asked for since the worker began."""

    def told() -> dict[str, int] | None:
        info = shards.redis(shards.doc("d0")).info("shardqa")
        named = ("kept", "bytes", "limit", "hits", "misses", "evictions")
        found = {name: int(info.get(f"shardqa_states_{name}", 0)) for name in named}
        return found if found["hits"] + found["misses"] == hits_and_misses else None

    return dict(wait_until(told, "INFO tells of all passages"))


@pytest.fixture
def anew(keeping: LocalCluster, connect: Connect) -> Shards:
    """That shard with a worker that keeps nothing yet, and five documents."""
    shards = connect(keeping)
    client = shards.redis(shards.doc("d0"))
    ready_worker(client, {kill_worker(client)})
    ingest(shards)
    return shards


def test_answers_are_the_same_cold_warm_and_after_the_workers_end(anew: Shards) -> None:
    cold = answer(anew)
    assert states(anew, K) == {**states(anew, K), "kept": K, "hits": 0, "evictions": 0, "limit": 64 << 20}
    assert answer(anew) == cold
    assert states(anew, 2 * K)["hits"] == K
    client = anew.redis(anew.doc("d0"))
    ready_worker(client, {kill_worker(client)})
    assert answer(anew) == cold
    assert states(anew, K) == {**states(anew, K), "hits": 0, "misses": K}


def test_a_document_that_changes_is_read_as_it_is_now(anew: Shards) -> None:
    before = answer(anew)
    anew.ingest("d0", MILL.replace("1742", "1803"))
    changed = answer(anew)
    assert changed != before
    assert states(anew, 2 * K) == {**states(anew, 2 * K), "hits": K - 1, "misses": K + 1, "kept": K + 1}
    text = changed["passages"][keys.passage(anew.corpus, "d0", 0)]["text"]
    assert "1803" in text
    anew.ingest("d0", MILL)
    assert answer(anew)["spans"] == before["spans"]


@pytest.mark.parametrize("limit", [0, LITTLE])
def test_answers_are_the_same_where_little_or_nothing_may_be_kept(
    start_cluster: Start, anew: Shards, reader: Path, connect: Connect, limit: int
) -> None:
    other = connect(pushed(start_cluster(shards=1, module_arguments=("STATES_BYTES", str(limit))), reader))
    ingest(other)
    wanted = answer(anew)["spans"]
    for _ in range(3):
        assert answer(other)["spans"] == wanted
    found = states(other, 3 * K)
    assert found["bytes"] <= limit == found["limit"]
    assert (found["kept"] > 0) == (found["evictions"] > 0) == (limit > 0)


def test_the_shipped_reader_keeps_nothing(keeping: LocalCluster, connect: Connect) -> None:
    shards = connect(keeping)
    client = shards.redis(shards.doc("d0"))
    ready_worker(client, {kill_worker(client)})
    shards.ingest("d0", MILL)
    reply = json.loads(shards.client.get(shards.answer_key("d0", QUESTION)))
    assert reply["spans"][0]["text"] == "1742"
    wait_until(lambda: "shardqa_model_run_us_p50" in client.info("shardqa"), "INFO tells of the run")
    assert "shardqa_states_kept" not in client.info("shardqa")
