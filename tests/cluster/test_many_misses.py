"""Many plain GETs of answers that are not there yet: every one is answered, or told to come again."""

import asyncio
from typing import Any

import pytest
from redis.asyncio import Redis

from shardqa import keys
from shardqa.models import shipped
from tests.cluster.shards_client import Shards

MILL = "The mill at Hallow Ford was built in 1742 by the brothers Anders and Jon Lindqvist. It ground rye until 1911."
AT_ONCE = 64
PIPELINED = 10_000
RETRY = ("BUSY", "TIMEOUT", "ERR cluster_unavailable", "cluster_unavailable", "ERR indexing", "TRYAGAIN")


@pytest.fixture
def ingested(shards: Shards) -> dict[str, Any]:
    """The place of the node that has the mill."""
    shards.ingest("mill", MILL)
    place = shards.redis(shards.doc("mill")).connection_pool.connection_kwargs
    return {"host": place["host"], "port": place["port"], "socket_timeout": 60}


def keys_of(shards: Shards, count: int) -> list[str]:
    """Keys of answers to different questions, that no `Rank` went ahead of."""
    tag, epoch = shards.tag_of("mill")
    questions = (f"when was the mill at hallow ford built, version {n}" for n in range(count))
    return [keys.answer(shards.corpus, tag, epoch, shipped.NAME, 1, question) for question in questions]


def faults(replies: list[Any]) -> set[str]:
    return {str(reply) for reply in replies if not isinstance(reply, bytes)}


async def test_as_many_at_once_as_an_api_asks_are_all_answered(shards: Shards, ingested: dict[str, Any]) -> None:
    async with Redis(**ingested, max_connections=AT_ONCE) as client:
        replies = await asyncio.gather(*map(client.get, keys_of(shards, AT_ONCE)), return_exceptions=True)
    assert not faults(replies)


async def test_a_long_pipeline_of_them_is_answered_or_told_to_come_again(
    shards: Shards, ingested: dict[str, Any]
) -> None:
    """One GET of a connection is computed at a time, so most of these are of one answer."""
    names = keys_of(shards, 10)
    async with Redis(**ingested) as client:
        pipeline = client.pipeline(transaction=False)
        for n in range(PIPELINED):
            pipeline.get(names[n % len(names)])
        replies = await pipeline.execute(raise_on_error=False)
    assert len(replies) == PIPELINED
    assert all(fault.startswith(RETRY) for fault in faults(replies)), faults(replies)


async def test_more_at_once_than_a_worker_takes_are_told_to_come_again(
    shards: Shards, ingested: dict[str, Any]
) -> None:
    async with Redis(**ingested, max_connections=200) as client:
        replies = await asyncio.gather(*map(client.get, keys_of(shards, 200)), return_exceptions=True)
    assert all(fault.startswith(RETRY) for fault in faults(replies)), faults(replies)
