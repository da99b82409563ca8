"""Workers and nodes are killed and stopped at each step of ingest, ask, delete and register: all is whole again.

A worker stops exactly between two frames (steps.py). Then the harm is done, the cluster recovers by itself (a killed
node is started again), and the same operation is done again: what was acknowledged is there, nothing is there twice,
nothing is left behind.
"""

import asyncio
import itertools
import os
import signal
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest

from shardqa.cluster import local, redis_server
from shardqa.cluster.local import ClusterOptions, LocalCluster
from shardqa.engine import Engine
from shardqa.errors import ShardqaError
from tests.faults.checker import check
from tests.faults.operations import OPERATIONS, STEPS, Shards, until
from tests.faults.steps import Step, Steps, parent
from tests.nodes import prepare, running_cluster, settings_of

HANG_SECONDS = 1.0  # of a node; its worker waits as long


# ---- harms


def kill_worker(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)


def hang_worker(pid: int) -> None:
    os.kill(pid, signal.SIGSTOP)


def kill_node(pid: int) -> None:
    os.kill(parent(pid), signal.SIGKILL)


def hang_node(pid: int) -> None:
    node = parent(pid)
    os.kill(node, signal.SIGSTOP)
    threading.Timer(HANG_SECONDS, os.kill, (node, signal.SIGCONT)).start()


PUSH = next(step for step in STEPS if step.operation == "push")  # no other step has a model come
HARMS = (kill_worker, hang_worker, kill_node, hang_node)
NUMBERS = itertools.count()
EVERY = os.environ.get("FAULTS") == "all"
CASES = [
    (step, HARMS[(number + turn) % len(HARMS)])
    for turn in range(len(HARMS) if EVERY else 1)
    for number, step in enumerate(STEPS)
    if EVERY or number % 4 == 0 or step == PUSH
]


@pytest.fixture(scope="module")
def stepping(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[LocalCluster, Steps]]:
    folder = tmp_path_factory.mktemp("stepping")
    with Steps(folder) as steps, running_cluster(folder / "data", **options(steps)) as cluster:
        prepare(cluster)
        yield cluster, steps


def options(steps: Steps) -> dict[str, Any]:
    arguments = ("PYTHON", str(steps.python), "HEARTBEAT", "1000")
    return {"shards": 2, "extra": (("appendfsync", "always"),), "module_arguments": arguments}


@pytest.fixture
async def shards(stepping: tuple[LocalCluster, Steps]) -> AsyncIterator[Shards]:
    cluster, steps = stepping
    number = next(NUMBERS)
    engine = await Engine.connect(settings_of(cluster, corpus=f"steps-{number}", timeout=15))
    yield Shards(cluster, steps, engine, written=10 * number)  # one text, killed at in two tests, would be set aside
    await engine.close()


@pytest.mark.parametrize(("step", "harm"), CASES, ids=lambda value: str(getattr(value, "__name__", value)))
async def test_all_is_whole_again_after(shards: Shards, step: Step, harm: Callable[[int], None]) -> None:
    operation = OPERATIONS[step.operation]()
    await until(lambda: operation.before(shards), "the shards are ready")
    shards.steps.arm(step, harm)
    try:
        await operation.do(shards)
        was_done, fault_text = True, "nothing"
    except (ShardqaError, AssertionError) as fault:
        was_done, fault_text = False, repr(fault)
    await asyncio.to_thread(shards.steps.reached.wait, 20)
    was_reached = shards.steps.reached.is_set()
    shards.steps.disarm()
    told = [line for line in shards.steps.lines if b"CLUSTER" not in line]
    redis_server.reap()
    await asyncio.to_thread(local.start, again(shards))
    assert was_reached, f"{step} was not reached, met {fault_text}: {told[-30:]}"
    if was_done and step.operation != "push":
        await until(lambda: operation.holds(shards), "what was acknowledged is there")
    await until(lambda: operation.do(shards), "it can be done again")
    await until(lambda: operation.holds(shards), "all is whole")
    found = check(shards.history)
    assert not found, "\n".join(map(str, found))


def again(shards: Shards) -> ClusterOptions:
    given = options(shards.steps)
    del given["shards"]
    return ClusterOptions(data=shards.cluster.data, **given)
