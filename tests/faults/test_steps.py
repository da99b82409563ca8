"""kill -9 and SIGSTOP of worker and node at each step of ingest, ask, delete and register: all is whole again after it.

A worker stops exactly between two frames (steps.py). Then the harm is done, the cluster recovers by itself (a killed
node is started again), and the same operation is done again: what was acknowledged is there, nothing is there twice,
nothing is left behind.
"""

import asyncio
import os
import signal
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest
from redis.exceptions import RedisError

from shardqa import keys
from shardqa.cluster import local, redis_server
from shardqa.cluster.local import LocalCluster, Wanted
from shardqa.engine import Engine
from shardqa.errors import ShardqaError
from shardqa.schema import Document
from tests.faults import documents
from tests.faults.steps import Step, Steps, parent
from tests.nodes import prepare, running_cluster, settings_of

DOCUMENT = "mill of Arnsby"
DOC = DOCUMENT.encode()
OTHER = "bridge of Arnsby"  # is there all the time
HANG_SECONDS = 1.0  # of a node; its worker waits as long
SCRIPT = "GB('CommandReader').map(lambda x: 'hello').register(trigger='hello')"
STEPS = (
    Step("ingest", "a document came", "in", "REQUEST", (b"Ingest",)),
    Step(
        "ingest",
        "the right to write is asked for",
        "out",
        "CALL",
        (
            b"HSET",
            DOC,
        ),
    ),
    Step(
        "ingest",
        "what is there is asked for",
        "out",
        "CALL",
        (
            b"HMGET",
            DOC,
        ),
    ),
    Step(
        "ingest",
        "what is there is known",
        "in",
        "CALLED",
        (
            b"HMGET",
            DOC,
        ),
    ),
    Step("ingest", "passages leave", "out", "CALL", (b"PUBLISH",)),
    Step("ingest", "passages are written", "in", "CALLED", (b"PUBLISH",)),
    Step("ingest", "the client is told", "out", "REPLY", (b'"changed":true',)),
    Step("ask", "its terms are asked for", "in", "REQUEST", (b"Terms",)),
    Step("ask", "its terms are told", "out", "REPLY", (b'"df"',)),
    Step("ask", "passages are ranked", "in", "REQUEST", (b"Rank",)),
    Step("ask", "the ranking is kept", "out", "CALL", (b"rank:",)),
    Step("ask", "the ranking is told", "out", "REPLY", (b'"passages":[["',)),
    Step("ask", "a GET missed", "in", "MISS"),
    Step("ask", "passages are loaded", "out", "CALL", (b"AI.TENSORGET",)),
    Step("ask", "passages are there", "in", "CALLED", (b"AI.TENSORGET",)),
    Step("ask", "the scoring is asked for", "out", "CALL", (b"AI.MODELGET",)),
    Step("ask", "the answer is told", "out", "REPLY", (b'"spans"',)),
    Step("ask", "the answer is kept", "out", "CALL", (b"answer:",)),
    Step("delete", "a delete came", "in", "REQUEST", (b"Delete",)),
    Step("delete", "passages leave", "out", "CALL", (b"PUBLISH",)),
    Step("delete", "passages are gone", "in", "CALLED", (b"PUBLISH",)),
    Step("delete", "the client is told", "out", "REPLY", (b'"deleted":true',)),
    Step("push", "a model came", "in", "MODELLOAD"),
    Step("push", "it is loaded", "out", "REPLY"),
    Step("register", "a script came", "in", "REQUEST", (b"RG.PYEXECUTE",)),
    Step("register", "another shard prepares", "in", "REQUEST", (b"PREPARE",)),
    Step("register", "it tells the node", "out", "REGISTER"),
    Step("register", "another shard commits", "in", "REQUEST", (b"COMMIT",)),
    Step("register", "the client is told", "out", "RELEASE"),
)


@dataclass(slots=True)
class Shards:
    """Two shards whose workers stop at steps."""

    cluster: LocalCluster
    steps: Steps
    engine: Engine
    version: int = 0

    def pids(self) -> set[int]:
        return {one.process.pid for one in self.cluster.state.nodes if one.process is not None}

    async def ask(self, version: int) -> None:
        """Raises AssertionError where the answer is not this version's, or partial."""
        question = documents.questions(DOCUMENT, version)[0]
        answer = await self.engine.ask(f"{question.text} {time.monotonic()}", fresh=True)
        assert not answer.partial, answer.failed
        assert answer.answer == question.answer

    async def put(self) -> None:
        self.version += 1
        text = documents.text(DOCUMENT, self.version)
        await self.engine.put(Document(id=DOCUMENT, title=DOCUMENT, text=text))

    async def keys_of(self, pattern: str) -> list[str]:
        replies = await self.engine.masters.everywhere("KEYS", pattern)
        return sorted(key.decode() for reply in replies for key in reply.value)

    async def until(self, done: Callable[[], Awaitable[object]], what: str, seconds: float = 60.0) -> None:
        """Until `done` raises nothing that passes."""
        deadline, met = time.monotonic() + seconds, ""
        while time.monotonic() < deadline:
            try:
                await done()
                return
            except (ShardqaError, AssertionError, RedisError, OSError) as fault:
                met = f"{type(fault).__name__}: {fault}"
            await asyncio.sleep(0.05)
        pytest.fail(f"{what}: waited {seconds:g} s in vain, last met {met}")


# ---- operations: what is done before the harm, what is done while it happens, what must hold after it was done again


class Operation:
    async def before(self, shards: Shards) -> None:
        await shards.engine.put(Document(id=OTHER, title=OTHER, text=documents.text(OTHER, 1)))
        await shards.put()

    async def do(self, shards: Shards) -> None:
        raise NotImplementedError

    async def holds(self, shards: Shards) -> None:
        """Raises AssertionError."""
        raise NotImplementedError


class Ingest(Operation):
    async def do(self, shards: Shards) -> None:
        await shards.put()

    async def holds(self, shards: Shards) -> None:
        found = await shards.engine.get(shards.engine.settings.corpus, DOCUMENT)
        assert found is not None
        assert found.text == documents.text(DOCUMENT, shards.version)
        assert len(await shards.keys_of(f"passage:*:{DOCUMENT}:*")) == 1
        assert len(await shards.keys_of(f"tokens:*:{DOCUMENT}:*")) == 1
        await shards.ask(shards.version)


class Ask(Ingest):
    async def do(self, shards: Shards) -> None:
        await shards.ask(shards.version)


class Delete(Ingest):
    async def do(self, shards: Shards) -> None:
        await shards.engine.delete(shards.engine.settings.corpus, DOCUMENT)

    async def holds(self, shards: Shards) -> None:
        assert await shards.keys_of(f"*:{DOCUMENT}*") == []
        answer = await shards.engine.ask(f"Who built the {DOCUMENT}? {time.monotonic()}", fresh=True)
        assert not answer.partial
        assert DOCUMENT not in {found.document for found in answer.n_best}


async def _said(steps: Steps, words: bytes, first: int) -> None:
    assert any(line.startswith(words) for line in steps.lines[first:])


class Push(Ingest):
    """The reader of the document's shard is gone; who asks has it sent from the other shard."""

    async def before(self, shards: Shards) -> None:
        await super().before(shards)
        owner = shards.engine.masters.owner(keys.doc(shards.engine.settings.corpus, DOCUMENT))
        first = len(shards.steps.lines)
        deleted = await shards.engine.masters.on(owner, "KEYS", "model:*")
        for key in deleted:
            await shards.engine.masters.on(owner, "DEL", key.decode())
        if deleted:  # its worker still runs it until it is told
            await shards.until(partial(_said, shards.steps, b"in MODELDROP", first), "the model is dropped")

    async def do(self, shards: Shards) -> None:
        await shards.ask(shards.version)

    async def holds(self, shards: Shards) -> None:
        assert len(await shards.keys_of("model:*")) == 2
        await shards.ask(shards.version)


class Register(Operation):
    async def do(self, shards: Shards) -> None:
        node = shards.engine.masters.nodes()[0]
        await shards.engine.masters.on(node, "RG.PYEXECUTE", SCRIPT, "ID", "hello", "UPGRADE")

    async def holds(self, shards: Shards) -> None:
        for reply in await shards.engine.masters.everywhere("RG.TRIGGER", "hello"):
            assert reply.value == [b"hello"], reply.fault
        for reply in await shards.engine.masters.everywhere("RG.DUMPREGISTRATIONS"):
            assert str(reply.value).count("'hello'") <= 2, reply.value  # its trigger, and its session
        await shards.ask(shards.version)


OPERATIONS: dict[str, type[Operation]] = {
    "ingest": Ingest,
    "ask": Ask,
    "delete": Delete,
    "push": Push,
    "register": Register,
}


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
    engine = await Engine.connect(settings_of(cluster, corpus="steps", timeout=15))
    yield Shards(cluster, steps, engine, version=time.monotonic_ns() % 500)
    await engine.close()


@pytest.mark.parametrize(("step", "harm"), CASES, ids=lambda value: str(getattr(value, "__name__", value)))
async def test_all_is_whole_again_after(shards: Shards, step: Step, harm: Callable[[int], None]) -> None:
    operation = OPERATIONS[step.operation]()
    await shards.until(lambda: operation.before(shards), "the shards are ready")
    shards.steps.arm(step, harm)
    try:
        await operation.do(shards)
        was_done, met = True, "nothing"
    except (ShardqaError, AssertionError) as fault:
        was_done, met = False, repr(fault)
    await asyncio.to_thread(shards.steps.reached.wait, 20)
    told = [line for line in shards.steps.lines if b"CLUSTER" not in line]
    assert shards.steps.reached.is_set(), f"{step} was not reached, met {met}: {told[-30:]}"
    redis_server.reap()
    await asyncio.to_thread(local.start, again(shards))
    if was_done and step.operation != "push":
        await shards.until(lambda: operation.holds(shards), "what was acknowledged is there")
    await shards.until(lambda: operation.do(shards), "it can be done again")
    await shards.until(lambda: operation.holds(shards), "all is whole")


def again(shards: Shards) -> Wanted:
    given = options(shards.steps)
    del given["shards"]
    return Wanted(data=shards.cluster.data, **given)
