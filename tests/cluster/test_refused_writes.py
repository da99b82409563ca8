"""Redis refuses writes or evicts (memory full, replicas missing): questions are answered, documents deleted."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from redis import Redis, ResponseError

from shardqa import keys
from shardqa.cluster import doctor, node
from shardqa.cluster.local import LocalCluster
from shardqa.engine import Engine
from shardqa.errors import ClusterUnavailable, WritesRefused
from shardqa.models import shipped
from shardqa.schema import Document, Ingested
from tests.nodes import settings_of, wait_until

MILL = "The mill at Hallow Ford was built in 1742 by the brothers Anders and Jon Lindqvist. It ground rye until 1911."
QUESTION = "When was the mill at Hallow Ford built?"
# What makes Redis refuse writes: how (given a client), and the word of its error.
REFUSALS: dict[str, tuple[dict[str, Any], str]] = {
    "memory": ({"maxmemory": 1, "maxmemory-policy": "noeviction"}, "OOM"),
    "replicas": ({"min-replicas-to-write": 3}, "NOREPLICAS"),
    "disk": ({"save": "3600 1"}, "MISCONF"),
}
CHANGED = {name for config, _ in REFUSALS.values() for name in config}


@pytest.fixture
def redis(one_shard: LocalCluster) -> Iterator[Redis]:
    """A client of the shard whose memory these tests take, and give back."""
    with node.connected(one_shard.state.port) as client:
        before = {name: str(client.config_get(name)[name]) for name in CHANGED}
        yield client
        for name, value in before.items():
            client.config_set(name, value)


@pytest.fixture
async def engine(one_shard: LocalCluster, corpus: str, redis: Redis) -> AsyncIterator[Engine]:
    async with await Engine.connect(settings_of(one_shard, corpus=corpus, timeout=30, cache_megabytes=0)) as engine:
        await engine.documents.put(Document(id="mill", text=MILL))
        yield engine


def refuse(redis: Redis, what: str) -> str:
    config, word = REFUSALS[what]
    for name, value in config.items():
        redis.config_set(name, value)
    if what == "disk":
        (Path(str(redis.config_get("dir")["dir"])) / "dump.rdb").mkdir(exist_ok=True)  # no file can take its place
        with suppress(ResponseError):  # one that Redis began by itself fails as well
            redis.bgsave()
        wait_until(lambda: redis.info("persistence")["rdb_last_bgsave_status"] == "err", "the save fails")
    return word


@pytest.mark.parametrize("what", REFUSALS)
async def test_questions_are_answered_and_what_is_refused_is_told_with_its_reason(
    one_shard: LocalCluster, engine: Engine, redis: Redis, what: str
) -> None:
    assert await engine.cluster.problems() == []
    word = refuse(redis, what)
    for _ in range(3):
        assert (await engine.ask(QUESTION)).answer == "1742"  # though it can't be kept
    with pytest.raises(ClusterUnavailable, match=word):
        await engine.documents.put(Document(id="other", text="The kiln was built in 1801."))
    (shard,) = await engine.cluster.shards()
    assert word in (shard.refuses or "")
    assert any(word in problem and "answered" in problem for problem in await engine.cluster.problems())
    connect = lambda host, port: Redis(host=host, port=port)  # noqa: E731
    findings = doctor.cluster(one_shard.seed(), connect, "default", shipped.NAME, "seeds")
    (writes,) = (finding for finding in findings if finding.check == "writes")
    assert (writes.verdict, word in writes.found, bool(writes.remedy)) == ("bad", True, True)


async def test_an_epoch_that_memory_had_no_room_for_never_comes_back(engine: Engine, redis: Redis, corpus: str) -> None:
    await engine.documents.put(Document(id="kiln", text="The kiln at Hallow Ford was built in 1801."))
    (before,) = (await engine.ranking.rank(engine.question(QUESTION, corpus=corpus), 5)).epochs.values()
    refuse(redis, "memory")
    await engine.documents.delete(corpus, "kiln")
    (during,) = (await engine.ranking.rank(engine.question(QUESTION, corpus=corpus), 5)).epochs.values()
    redis.config_set("maxmemory", 0)
    await engine.documents.put(Document(id="kiln", text="The kiln at Hallow Ford was built in 1803."))
    (after,) = (await engine.ranking.rank(engine.question(QUESTION, corpus=corpus), 5)).epochs.values()
    assert before < during < after


async def test_where_memory_ends_answers_go_and_documents_stay(engine: Engine, redis: Redis, corpus: str) -> None:
    redis.config_set("maxmemory", redis.info("memory")["used_memory"] + 3_000_000)
    for n in range(300):
        redis.set(f"ask:{corpus}:other:{n}", b"x" * 50_000, ex=3_600)
    assert redis.info("stats")["evicted_keys"] > 0
    assert (await engine.ask(QUESTION)).answer == "1742"
    assert await engine.documents.get(corpus, "mill") is not None


async def test_of_rows_that_are_sent_while_memory_is_full_the_rest_is_told_and_taken_by_the_next_try(
    engine: Engine, redis: Redis
) -> None:
    rows = [Document(id=f"ferries.csv/{n}", text=f"Ferry Alma has berth: {n}.") for n in range(100)]
    await engine.together.put_each(rows[:50])
    refuse(redis, "memory")
    outcomes = await engine.together.put_each(rows)
    assert [type(outcome) for outcome in outcomes] == [Ingested] * 50 + [WritesRefused] * 50
    redis.config_set("maxmemory", 0)
    outcomes = await engine.together.put_each(rows)
    assert [isinstance(outcome, Ingested) and outcome.changed for outcome in outcomes] == [False] * 50 + [True] * 50


def big(year: int) -> Document:
    return Document(id="big", text=" ".join(f"Mill {n} of the valley was built in {year}." for n in range(6_000)))


def leave(redis: Redis, room: int) -> None:
    redis.config_set("maxmemory-policy", "noeviction")
    redis.config_set("maxmemory", redis.info("memory")["used_memory"] + room)


async def test_a_new_document_that_memory_has_room_for_in_part_is_not_there(engine: Engine, redis: Redis) -> None:
    leave(redis, 1_000_000)
    with pytest.raises(WritesRefused):
        await engine.documents.put(big(1801))
    names = [str(info.id) for info in (await engine.catalogue.documents()).documents]
    assert names == ["mill"]
    assert not redis.keys(f"*:{engine.settings.corpus}:*:big*")


async def test_a_document_that_was_replaced_in_part_is_whole_once_there_is_room(engine: Engine, redis: Redis) -> None:
    await engine.documents.put(big(1801))
    leave(redis, 600_000)
    key = keys.doc(engine.settings.corpus, "big")
    with pytest.raises(WritesRefused):
        await engine.documents.put(big(1902))
    assert redis.hget(key, "digest") is None
    await asyncio.sleep(5)  # until the shard has tried it again by itself, and was refused
    redis.config_set("maxmemory", 0)
    wait_until(lambda: redis.hget(key, "digest"), "it is written again")
    passages = [redis.hget(name, "text") for name in redis.keys(f"passage:{engine.settings.corpus}:*:big:*")]
    years = {year for year in ("in 1801", "in 1902") for text in passages if year in str(text)}
    assert len(years) == 1


@pytest.mark.parametrize("what", ["replicas", "disk"])
async def test_a_corpus_that_can_not_be_removed_stays_whole_and_the_error_says_so(
    engine: Engine, redis: Redis, corpus: str, what: str
) -> None:
    word = refuse(redis, what)
    with pytest.raises(WritesRefused, match=f"{word}.*; nothing is removed of corpus"):
        await engine.catalogue.drop(corpus)
    assert (await engine.ask(QUESTION)).answer == "1742"
