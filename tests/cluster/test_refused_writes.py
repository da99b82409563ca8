"""Redis refuses writes (memory full, replicas missing): questions are still answered, documents still deleted."""

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from redis import Redis, ResponseError

from shardqa.cluster import doctor
from shardqa.cluster.local import LocalCluster
from shardqa.engine import Engine
from shardqa.errors import ClusterUnavailable
from shardqa.schema import Document
from tests.nodes import settings_of, wait_until

MILL = "The mill at Hallow Ford was built in 1742 by the brothers Anders and Jon Lindqvist. It ground rye until 1911."
QUESTION = "When was the mill at Hallow Ford built?"
# What makes Redis refuse writes: how (given a client), and the word of its error.
REFUSALS: dict[str, tuple[dict[str, Any], str]] = {
    "memory": ({"maxmemory": 1, "maxmemory-policy": "noeviction"}, "OOM"),
    "replicas": ({"min-replicas-to-write": 3}, "NOREPLICAS"),
    "disk": ({"save": "3600 1"}, "MISCONF"),
}


@pytest.fixture(scope="module")
def small(start_cluster: Callable[..., LocalCluster]) -> LocalCluster:
    """A shard whose memory these tests take."""
    return start_cluster(shards=1)


@pytest.fixture
def redis(small: LocalCluster) -> Iterator[Redis]:
    host, _, port = small.seed().rpartition(":")
    with Redis(host=host, port=int(port)) as client:
        yield client
        client.config_set("maxmemory", 0)
        client.config_set("min-replicas-to-write", 0)
        client.config_set("save", "")


@pytest.fixture
async def engine(small: LocalCluster, corpus: str, redis: Redis) -> AsyncIterator[Engine]:
    engine = await Engine.connect(settings_of(small, corpus=corpus, timeout=30, cache_megabytes=0))
    await engine.documents.put(Document(id="mill", text=MILL))
    yield engine
    await engine.close()


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
async def test_a_question_is_answered_where_its_answer_cannot_be_kept(engine: Engine, redis: Redis, what: str) -> None:
    refuse(redis, what)
    for _ in range(3):
        assert (await engine.ask(QUESTION)).answer == "1742"


@pytest.mark.parametrize("what", REFUSALS)
async def test_what_is_refused_is_told_with_its_reason(engine: Engine, redis: Redis, what: str) -> None:
    assert await engine.cluster.problems() == []
    word = refuse(redis, what)
    (shard,) = await engine.cluster.shards()
    assert shard.refuses is not None
    assert word in shard.refuses
    assert any(word in problem and "answered" in problem for problem in await engine.cluster.problems())


@pytest.mark.parametrize("what", REFUSALS)
def test_the_doctor_tells_it_too(small: LocalCluster, engine: Engine, redis: Redis, what: str) -> None:
    word = refuse(redis, what)
    connect = lambda host, port: Redis(host=host, port=port)  # noqa: E731
    findings = doctor.cluster(small.seed(), connect, "default", "reader-v2-int8", "seeds")
    found = [f for f in findings if f.check == "writes"]
    assert [f.verdict for f in found] == ["bad"]
    assert word in found[0].found
    assert found[0].remedy


@pytest.mark.parametrize("what", REFUSALS)
async def test_a_document_that_cannot_be_stored_is_refused_with_the_reason(
    engine: Engine, redis: Redis, what: str
) -> None:
    word = refuse(redis, what)
    with pytest.raises(ClusterUnavailable, match=word):
        await engine.documents.put(Document(id="other", text="The kiln was built in 1801."))


async def test_documents_are_deleted_while_memory_is_full(engine: Engine, redis: Redis, corpus: str) -> None:
    await engine.documents.put(Document(id="kiln", text="The kiln at Hallow Ford was built in 1801."))
    assert (await engine.ask("When was the kiln at Hallow Ford built?")).answer == "1801"
    refuse(redis, "memory")
    assert await engine.documents.delete(corpus, "kiln")
    assert not list(redis.scan_iter("*:kiln*"))
    answer = await engine.ask("When was the kiln at Hallow Ford built?")
    assert answer.document != "kiln"
    assert all(candidate.document != "kiln" for candidate in answer.n_best)


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
