"""A document that ends the worker costs its shard two starts, and nothing else."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from redis import ResponseError

from shardqa.cluster import doctor
from shardqa.cluster.local import LocalCluster
from shardqa.config import Settings
from shardqa.engine import Engine
from tests.cluster.shards_client import Shards
from tests.nodes import settings_of, wait_until
from tests.workers import kill_worker

SENTENCE = "The mill at Hallow Ford was built in 1742 by the brothers Anders and Jon Lindqvist, who ground rye there. "
POISON = """
import os
from shardqa.gears_functions.shard import document_writer
cut = document_writer.split_in_slices
def poisoned(text, *others):
    if "POISON" in text:
        os._exit(1)
    return cut(text, *others)
document_writer.split_in_slices = poisoned
GB("CommandReader").register(trigger="Poisoned")
"""
CURE = """
from shardqa.gears_functions import splitting
from shardqa.gears_functions.shard import document_writer
document_writer.split_in_slices = splitting.split_in_slices
"""


@pytest.mark.parametrize("way", ["HSET", "Ingest"])
def test_a_document_that_the_worker_ended_with_twice_is_set_aside(
    start_cluster: Callable[..., LocalCluster], connect: Callable[[LocalCluster], Shards], way: str
) -> None:
    cluster = start_cluster(shards=1)
    shards = connect(cluster)
    key = shards.doc("bad")
    redis = shards.redis(key)
    shards.ingest("mill", SENTENCE)
    redis.execute_command("RG.PYEXECUTE", POISON, "ID", "poison")
    if way == "HSET":
        redis.hset(key, "text", "POISON in the well")
    else:
        for _ in range(2):
            wait_until(lambda: redis.execute_command("RG.TRIGGER", "Shard"), "the worker is back")
            with pytest.raises(ResponseError, match="the worker of this node died"):
                shards.ingest("bad", "POISON in the well")
    told = wait_until(lambda: _aside(shards, way), "it is set aside")
    assert (told["shardqa_documents_aside_keys"], told["shardqa_worker_restarts"]) == (key, 2)
    assert shards.documents("Who built the mill?") == ["mill"]
    with pytest.raises(ResponseError, match=r"bad_document: .*set aside: the worker ended 2 times"):
        shards.ingest("bad", "POISON in the well")
    found = list(doctor.cluster(cluster.seed(), lambda host, port: redis, "default", "m", "c"))
    assert any(one.check == "documents" and key in one.found for one in found)
    assert asyncio.run(_aside_of_nodes(cluster)) == [1]
    assert shards.delete("bad")["deleted"] is (way == "HSET")
    assert shards.ingest("bad", "Clean water in the well")["changed"] is True
    assert "shardqa_documents_aside_keys" not in wait_until(lambda: _cleared(redis), "nothing is set aside")


def test_a_document_that_is_read_to_its_end_is_no_suspect_any_more(
    start_cluster: Callable[..., LocalCluster], connect: Callable[[LocalCluster], Shards]
) -> None:
    shards = connect(start_cluster(shards=1))
    redis = shards.redis(shards.doc("bad"))
    redis.execute_command("RG.PYEXECUTE", POISON, "ID", "poison")
    pids: list[int] = []
    for _ in range(2):
        with pytest.raises(ResponseError, match="the worker of this node died"):
            shards.ingest("bad", "POISON in the well")
        wait_until(lambda: redis.execute_command("RG.TRIGGER", "Shard"), "the worker is back")
        redis.execute_command("RG.PYEXECUTE", CURE)
        assert shards.ingest("bad", "POISON in the well")["changed"] is True
        shards.delete("bad")
        pids.append(kill_worker(redis, but_not=pids))  # the next one is poisoned again
        wait_until(lambda: redis.execute_command("RG.TRIGGER", "Shard"), "the worker is back")


def test_a_document_and_a_corpus_go_while_the_worker_of_their_shard_is_being_replaced(
    start_cluster: Callable[..., LocalCluster], connect: Callable[[LocalCluster], Shards]
) -> None:
    cluster = start_cluster(shards=1)
    shards = connect(cluster)
    redis = shards.redis(shards.doc("mill"))
    for document in ("mill", "ford"):
        shards.ingest(document, SENTENCE)
    asyncio.run(_delete_and_drop(settings_of(cluster, corpus=shards.corpus, timeout=60), redis))
    assert not [*redis.scan_iter("passage:*"), *redis.scan_iter("doc:*")]


async def _delete_and_drop(settings: Settings, redis: Any) -> None:
    async with await Engine.connect(settings) as engine:
        first = kill_worker(redis)
        assert await engine.documents.delete(settings.corpus, "mill") is True
        kill_worker(redis, but_not=[first])
        assert (await engine.catalogue.drop(settings.corpus)).corpus == settings.corpus
        assert [step async for step in engine.catalogue.dropping(settings.corpus)][-1].done


def _aside(shards: Shards, way: str) -> dict[str, str]:
    if way == "Ingest":
        with pytest.raises(ResponseError):
            shards.ingest("bad", "POISON in the well")
    info: dict[str, str] = shards.redis(shards.doc("bad")).info("shardqa")
    return info if info.get("shardqa_documents_aside") else {}


def _cleared(redis: object) -> dict[str, str]:
    info: dict[str, str] = redis.info("shardqa")  # type: ignore[attr-defined]
    return {} if info.get("shardqa_documents_aside") else info


async def _aside_of_nodes(cluster: LocalCluster) -> list[int]:
    engine = await Engine.connect(settings_of(cluster))
    try:
        return [node.aside for node in (await engine.cluster.nodes()).nodes]
    finally:
        await engine.close()
