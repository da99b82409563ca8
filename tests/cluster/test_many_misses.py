"""Many plain GETs of answers that are not there yet: every one is answered, or told to come again."""

import asyncio

from redis.asyncio import Redis
from redis.exceptions import RedisError, ResponseError

from shardqa import keys
from tests.cluster.shards_client import Shards

MILL = "The mill at Hallow Ford was built in 1742 by the brothers Anders and Jon Lindqvist. It ground rye until 1911."
AT_ONCE = 64
PIPELINED = 10_000
RETRY = ("BUSY", "TIMEOUT", "ERR cluster_unavailable", "cluster_unavailable", "ERR indexing", "TRYAGAIN")


def keys_of(shards: Shards, count: int) -> list[str]:
    """Answers to different questions, that no `Rank` went ahead of."""
    tag, epoch = shards.tag_of("mill")
    asked = (f"when was the mill at hallow ford built, version {n}" for n in range(count))
    return [keys.answer(shards.corpus, tag, epoch, "reader-v2-int8", 1, question) for question in asked]


async def test_as_many_at_once_as_an_api_asks_are_all_answered(shards: Shards) -> None:
    shards.ingest("mill", MILL)
    node = shards.redis(shards.doc("mill")).connection_pool.connection_kwargs
    wanted = keys_of(shards, AT_ONCE)
    async with Redis(host=node["host"], port=node["port"], max_connections=AT_ONCE) as client:
        replies = await asyncio.gather(*(client.get(key) for key in wanted), return_exceptions=True)
    assert [reply for reply in replies if not isinstance(reply, bytes)] == []


async def test_a_long_pipeline_of_them_is_answered_or_told_to_come_again(shards: Shards) -> None:
    """Of one connection one GET is computed at a time, so most of these are of one answer."""
    shards.ingest("mill", MILL)
    node = shards.redis(shards.doc("mill")).connection_pool.connection_kwargs
    wanted = keys_of(shards, 10)
    async with Redis(host=node["host"], port=node["port"]) as client:
        pipeline = client.pipeline(transaction=False)
        for n in range(PIPELINED):
            pipeline.get(wanted[n % len(wanted)])
        replies = await pipeline.execute(raise_on_error=False)
    assert len(replies) == PIPELINED
    faults = {str(reply) for reply in replies if not isinstance(reply, bytes)}
    assert all(fault.startswith(RETRY) for fault in faults), faults


async def test_more_at_once_than_a_worker_takes_are_told_to_come_again(shards: Shards) -> None:
    shards.ingest("mill", MILL)
    node = shards.redis(shards.doc("mill")).connection_pool.connection_kwargs
    wanted = keys_of(shards, 400)

    async def ask(key: str) -> bytes | RedisError:
        async with Redis(host=node["host"], port=node["port"], socket_timeout=60) as client:
            try:
                value = await client.get(key)
                assert value is None or isinstance(value, bytes)
                return value or b""
            except ResponseError as error:
                return error

    replies = await asyncio.gather(*(ask(key) for key in wanted))
    faults = {str(reply) for reply in replies if not isinstance(reply, bytes)}
    assert all(fault.startswith(RETRY) for fault in faults), faults
