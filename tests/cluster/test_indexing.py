"""A shard that reads its passages into its index: the others answer meanwhile, and everybody is told."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from redis import Redis
from redis.exceptions import ResponseError

from shardqa import keys
from shardqa.cluster import node, tags
from shardqa.cluster.local import LocalCluster
from shardqa.engine import Engine
from shardqa.errors import ClusterUnavailable
from shardqa.loader import preparation
from shardqa.schema import Document
from tests.nodes import settings_of, wait_until

MILL = "The mill at Hallow Ford was built in 1742 by the brothers Anders and Jon Lindqvist. It ground rye until 1911."
QUESTION = "When was the mill at Hallow Ford built?"
HOLD = """
import asyncio, os
from shardqa.gears_functions.shard.keyspace_sync import KeyspaceSync

scan = KeyspaceSync.scan

async def held(self):
    while os.path.exists({gate!r}):
        await asyncio.sleep(0.02)
    return await scan(self)

KeyspaceSync.scan = held
"""


@pytest.fixture(scope="module")
def two(start_cluster: Callable[..., LocalCluster]) -> LocalCluster:
    """Two shards whose second one reads its passages only while there is no file `gate`."""
    cluster = start_cluster(shards=2)
    with second(cluster) as client:
        client.execute_command("RG.PYEXECUTE", HOLD.format(gate=str(gate(cluster))))
    return cluster


def gate(cluster: LocalCluster) -> Path:
    return cluster.data / "gate"


def second(cluster: LocalCluster) -> AbstractContextManager[Redis]:
    return node.connected(cluster.addresses[1][1])


@pytest.fixture
def reading(two: LocalCluster) -> Iterator[str]:
    """The second shard has lost its documents and looks through its keys; its name."""
    gate(two).touch()
    with second(two) as client:
        client.flushall()
        wait_until(lambda: is_indexing(client), "it says so")
    yield "{}:{}".format(*two.addresses[1])
    gate(two).unlink(missing_ok=True)
    with second(two) as client:
        wait_until(lambda: not is_indexing(client), "it is done")


def is_indexing(client: Redis) -> bool:
    description = tags.description(client)
    assert description is not None
    return description.indexing


@pytest.fixture
async def engine(two: LocalCluster, corpus: str) -> AsyncIterator[Engine]:
    async with await Engine.connect(settings_of(two, corpus=corpus)) as engine:
        yield engine


async def put_on_the_first(engine: Engine, corpus: str) -> None:
    """Puts a document that the first shard holds."""
    first = engine.shards.nodes()[0]
    id = next(id for n in range(99) if engine.shards.owner(keys.doc(corpus, id := f"mill-{n}")) is first)
    await engine.documents.put(Document(id=id, text=MILL))


async def test_the_other_shards_answer_meanwhile_and_everybody_is_told(
    engine: Engine, corpus: str, two: LocalCluster, reading: str
) -> None:
    with pytest.raises(ClusterUnavailable, match=reading):
        await engine.ask(QUESTION)  # no other shard has the corpus
    await put_on_the_first(engine, corpus)
    answer = await engine.ask(QUESTION)
    assert (answer.answer, answer.partial, answer.failed) == ("1742", True, [reading])
    sizes = await engine.catalogue.corpora()
    assert (sizes.partial, sizes.failed) == (True, [reading])
    (problem,) = await engine.cluster.problems()
    assert problem.startswith(f"{reading}: it reads its passages into its index")
    with second(two) as client, pytest.raises(ResponseError, match=r"^indexing: .* reads its passages .* 0 so far"):
        client.execute_command("RG.TRIGGER", "Terms", corpus, QUESTION)


async def test_a_corpus_can_be_dropped_meanwhile(engine: Engine, corpus: str, reading: str) -> None:
    await put_on_the_first(engine, corpus)
    assert (await engine.catalogue.drop(corpus)).corpus == corpus


async def test_who_waits_for_the_indexes_is_told_and_gets_whole_answers(
    engine: Engine, corpus: str, two: LocalCluster, reading: str
) -> None:
    await put_on_the_first(engine, corpus)
    waits = asyncio.Event()
    waiting = asyncio.create_task(preparation.wait_for_indexes(engine, lambda passages: waits.set()))
    await waits.wait()
    assert not waiting.done()
    gate(two).unlink()
    await waiting
    answer = await engine.ask(QUESTION)
    assert (answer.answer, answer.partial) == ("1742", False)
