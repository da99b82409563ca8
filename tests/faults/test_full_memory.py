"""Redis' memory is full from some step of ingest, ask, delete, push and register on.

Questions are answered, what was acknowledged is there, deletes are done; once there is room again all is whole.
"""

import asyncio
import itertools
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress

import pytest
from redis import Redis

from shardqa.cluster import ports
from shardqa.cluster.local import LocalCluster
from shardqa.engine import Engine
from shardqa.errors import ClusterUnavailable, UnknownCorpus, WritesRefused
from shardqa.gears_functions.shard.document_parts import FRAME
from tests.faults import documents
from tests.faults.checker import check
from tests.faults.operations import DOCUMENT, OPERATIONS, OTHER, STEPS, Shards, until
from tests.faults.steps import Step, Steps
from tests.nodes import prepare, running_cluster, settings_of

REFUSES, EVICTS = "noeviction", "volatile-lru"  # with the second, answers and rankings go first
MAY_FAIL = {"ingest": WritesRefused, "push": AssertionError}  # of a push: the answer is partial
KEPT = "lighthouse of Arnsby"
LONG = documents.LONG[0]  # written in several frames
MANY = 500
NUMBERS = itertools.count()
EVERY = os.environ.get("FAULTS") == "all"
FEW = {"passages leave", "the answer is kept", "it is loaded", "a delete came"}
CASES = [
    (step, policy)
    for number, step in enumerate(STEPS)
    for policy in (REFUSES, EVICTS)
    if EVERY or (step.name in FEW and policy == (REFUSES, EVICTS)[number % 2])
]


@pytest.fixture(scope="module")
def stepping(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[LocalCluster, Steps]]:
    folder = tmp_path_factory.mktemp("memory")
    with Steps(folder) as steps:
        arguments = ("PYTHON", str(steps.python))
        with running_cluster(folder / "data", shards=2, module_arguments=arguments) as cluster:
            prepare(cluster)
            yield cluster, steps


@pytest.fixture
async def shards(stepping: tuple[LocalCluster, Steps]) -> AsyncIterator[Shards]:
    cluster, steps = stepping
    engine = await Engine.connect(settings_of(cluster, corpus=f"memory-{next(NUMBERS)}", timeout=15))
    yield Shards(cluster, steps, engine)
    bound(cluster, 0, REFUSES)
    await engine.close()


def bound(cluster: LocalCluster, size: int, policy: str) -> None:
    """CONFIG SET maxmemory on every node."""
    for one in cluster.state.nodes:
        with Redis(host=ports.HOST, port=one.port) as client:
            _bound(client, size, policy)


def leave(cluster: LocalCluster, room: int) -> None:
    """Leaves so many bytes on every node."""
    for one in cluster.state.nodes:
        with Redis(host=ports.HOST, port=one.port) as client:
            _bound(client, int(client.info("memory")["used_memory"]) + room, REFUSES)


def _bound(client: Redis, size: int, policy: str) -> None:
    client.config_set("maxmemory-policy", policy)
    client.config_set("maxmemory", size)
    client.ping()  # Redis 7.0 looks at its memory when a client's command comes, and not before


@pytest.mark.parametrize(("step", "policy"), CASES, ids=str)
async def test_while_memory_is_full_answers_go_on_and_all_is_whole_after(
    shards: Shards, step: Step, policy: str, caplog: pytest.LogCaptureFixture
) -> None:
    operation = OPERATIONS[step.operation]()
    await until(lambda: operation.before(shards), "the shards are ready")
    await shards.put(KEPT)
    shards.steps.arm(step, lambda _: bound(shards.cluster, 1, policy))
    try:
        await operation.do(shards)
        was_done = True
    except MAY_FAIL.get(step.operation, ()):
        was_done = False
    assert await asyncio.to_thread(shards.steps.reached.wait, 20), f"{step} was not reached"
    if step.operation == "push":  # the reader came in time, or the shard says why it has none
        answer = await shards.reply(f"Who built the {DOCUMENT}?")
        assert not answer.partial or "is not on this shard, which stores nothing now: memory is full" in caplog.text
        assert "no shard has the model" not in caplog.text
    else:
        assert not (await shards.reply(f"Who built the {OTHER}?")).partial
        assert not (await shards.reply(f"Who built the {DOCUMENT}?")).partial
    await shards.delete(OTHER)
    assert await shards.look(OTHER) is None
    bound(shards.cluster, 0, REFUSES)
    if was_done and step.operation != "push":
        await operation.holds(shards)
    await until(lambda: operation.do(shards), "it can be done again")
    await until(lambda: operation.holds(shards), "all is whole")
    check_history(shards)


@pytest.mark.parametrize("room", range(0, 1_000_000, 50_000) if EVERY else (100_000,))
async def test_a_document_that_memory_has_room_for_in_part_is_refused_and_can_be_put_again(
    shards: Shards, room: int
) -> None:
    for name in (KEPT, LONG):
        await until(lambda name=name: shards.put(name), "the shards are ready")  # type: ignore[misc]
    before = shards.written
    leave(shards.cluster, room)
    with suppress(WritesRefused):
        await shards.put(LONG)
    for name in (KEPT, LONG):
        assert not (await shards.reply(f"Who built the {name}?")).partial
    await shards.delete(KEPT)
    assert await shards.look(LONG) in {documents.text(LONG, version) for version in (before, before + 1)}
    bound(shards.cluster, 0, REFUSES)
    await shards.put(LONG)
    count = await shards.passages(LONG)
    assert count > FRAME
    for kind in ("passage", "tokens"):
        assert len(await shards.keys_of(f"{kind}:{shards.corpus}:*:{LONG}:*")) == count
    check_history(shards)


async def test_deletes_make_room_for_documents(shards: Shards) -> None:
    names = [f"{KEPT} {number}" for number in range(MANY)]
    leave(shards.cluster, 100_000)
    first = await put_until_refused(shards, names)
    assert 3 < len(first) < MANY
    for name in first[::2]:
        await shards.delete(name)
    await until(lambda: shards.put(first[0]), "there is room again")
    for name in first[1::2]:
        assert await shards.look(name) is not None
    check_history(shards)
    bound(shards.cluster, 0, REFUSES)
    for name in first:
        await shards.delete(name)


@pytest.mark.skipif(not EVERY, reason="takes seconds; 'make faults' runs it")
async def test_after_a_policy_that_evicts_documents_ingest_makes_all_whole(shards: Shards) -> None:
    """The policy is allkeys-lru, which doctor warns of: documents and readers are lost, and nothing but that."""
    operation = OPERATIONS["ingest"]()
    await until(lambda: operation.before(shards), "the shards are ready")
    bound(shards.cluster, 1, "allkeys-lru")
    await until(lambda: no_keys(shards), "all keys are evicted")
    with suppress(UnknownCorpus, ClusterUnavailable):
        assert (await shards.reply(f"Who built the {DOCUMENT}?")).answer is None
    bound(shards.cluster, 0, REFUSES)
    await asyncio.to_thread(prepare, shards.cluster)
    await operation.before(shards)
    await until(lambda: operation.holds(shards), "all is whole")


async def put_until_refused(shards: Shards, names: list[str]) -> list[str]:
    """Gives the names that were stored."""
    for number, name in enumerate(names):
        try:
            await shards.put(name)
        except WritesRefused as refused:
            assert "memory is full" in str(refused)  # noqa: PT017 (not each put is refused)
            return names[:number]
    return names


async def no_keys(shards: Shards) -> None:
    assert not await shards.keys_of(f"*:{shards.corpus}:*")


def check_history(shards: Shards) -> None:
    found = check(shards.history)
    assert not found, "\n".join(map(str, found))
