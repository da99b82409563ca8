"""A node that is killed, or hangs: the others answer meanwhile, and nothing is lost."""

import asyncio
import os
import signal
import socket
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack, suppress
from copy import copy
from itertools import count
from random import Random

import orjson
import pytest
from redis.asyncio import Redis
from redis.asyncio.cluster import ClusterNode

from shardqa import keys
from shardqa.cluster import local, processes, redis_server
from shardqa.cluster.local import ClusterOptions, LocalCluster
from shardqa.engine import Engine, cluster_view, connections, liveness
from shardqa.engine.connections import Shards
from shardqa.errors import AnswerTimeout, ClusterUnavailable
from shardqa.schema import Answer, Document
from tests.nodes import settings_of

TOWNS = ["Arnsby", "Belmore", "Corvin", "Dunwick", "Estrel", "Farholm", "Gilmere", "Hartwell", "Ilvane", "Jessop"]
BUILDERS = ["Ada", "Bruno", "Clara", "Doris", "Emil", "Frida", "Georg", "Hanna", "Ivar", "Johanna"]
QUESTIONS = [f"Who built the lighthouse of {town}?" for town in TOWNS]


@pytest.fixture(scope="module")
def doomed(start_cluster: Callable[..., LocalCluster]) -> LocalCluster:
    """Three shards that these tests may harm, and that lose nothing they acknowledged (everysec may, for 2 s)."""
    return start_cluster(shards=3, extra=(("appendfsync", "always"),))


@pytest.fixture
async def engine(doomed: LocalCluster) -> AsyncIterator[Engine]:
    engine = await Engine.connect(settings_of(doomed, corpus="towns", timeout=30))
    for town, builder in zip(TOWNS, BUILDERS, strict=True):
        text = f"The lighthouse of {town} was built by {builder} Lund in 1850. It still stands on the cliff."
        await engine.documents.put(Document(id=town, title=town, text=text))
    yield engine
    await engine.close()


def said(answer: Answer) -> tuple[object, ...]:
    return answer.answer, answer.document, answer.start, answer.end, answer.score


async def test_after_kill_9_and_a_restart_every_answer_is_what_it_was(doomed: LocalCluster, engine: Engine) -> None:
    before = [said(await engine.ask(question, fresh=True)) for question in QUESTIONS]
    assert [words[0] for words in before] == [f"{builder} Lund" for builder in BUILDERS]
    victim = doomed.state.nodes[1]
    assert victim.process is not None
    processes.kill(victim.process)
    redis_server.reap()

    partial = [await engine.ask(question, fresh=True) for question in QUESTIONS]
    assert {tuple(answer.failed) for answer in partial} == {(f"127.0.0.1:{victim.port}",)}
    assert all(answer.partial for answer in partial)
    lost = {owner for owner in TOWNS if engine.shards.owner(keys.doc("towns", owner)).port == victim.port}
    kept = [a.answer for a, town in zip(partial, TOWNS, strict=True) if town not in lost]
    assert kept == [f"{b} Lund" for b, town in zip(BUILDERS, TOWNS, strict=True) if town not in lost]

    local.start(ClusterOptions(data=doomed.data))
    after = [await engine.ask(question, fresh=True) for question in QUESTIONS]
    assert [said(answer) for answer in after] == before
    assert not any(answer.partial for answer in after)


async def test_a_corpus_that_changes_between_ranking_and_reading_is_read_without_the_shards_that_are_down(
    doomed: LocalCluster, engine: Engine
) -> None:
    await until_whole(engine)
    victim = doomed.state.nodes[1]
    town = next(town for town in TOWNS if engine.shards.owner(keys.doc("towns", town)).port != victim.port)
    owner = engine.shards.owner(keys.doc("towns", town))
    question = keys.normalise_question(f"Who built the lighthouse of {town}? Tell")
    ranked = await engine.ranking.rank(engine.question(question, corpus="towns"), 5)
    (tag,) = {passage.tag for passage in ranked.passages if passage.node == owner.name}
    assert victim.process is not None
    processes.kill(victim.process)
    redis_server.reap()
    try:
        text = f"The lighthouse of {town} was built by Zoe Lund in 1850. It still stands on the cliff."
        await engine.documents.put(Document(id=town, title=town, text=text))
        key = keys.answer("towns", tag, ranked.epochs[tag], engine.settings.model, 1, question)
        reply = orjson.loads(await engine.shards.on(owner, "GET", key))
        assert reply["spans"][0]["text"] == "Zoe Lund"
        assert not await engine.shards.on(owner, "EXISTS", key)
    finally:
        local.start(ClusterOptions(data=doomed.data))


async def test_a_node_that_restarts_between_questions_is_missed_by_none_of_them(
    doomed: LocalCluster, engine: Engine
) -> None:
    await asyncio.gather(*(engine.ask(question, fresh=True) for question in QUESTIONS))  # many connections are kept
    victim = doomed.state.nodes[0]
    assert victim.process is not None
    processes.kill(victim.process)
    redis_server.reap()
    local.start(ClusterOptions(data=doomed.data))
    document = next(town for town in TOWNS if engine.shards.owner(keys.doc("towns", town)).port == victim.port)
    assert await engine.documents.get("towns", document) is not None
    answers = await asyncio.gather(*(engine.ask(question, fresh=True) for question in QUESTIONS))
    assert [(answer.answer, answer.partial) for answer in answers] == [(f"{name} Lund", False) for name in BUILDERS]


async def test_connections_that_end_while_others_take_them_are_passing_faults_at_most(doomed: LocalCluster) -> None:
    shards = await Shards.connect(settings_of(doomed, timeout=30))
    node = shards.nodes()[0]
    ended = Redis(host=node.host, port=int(node.port))

    async def ask(pauses: Random) -> None:
        for _ in range(100):
            with suppress(ClusterUnavailable, AnswerTimeout):
                await shards.on(node, "PING")
            await asyncio.sleep(pauses.random() * 0.01)

    async def end_all() -> None:
        for _ in range(15):
            await asyncio.sleep(0.03)
            await ended.execute_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")

    await asyncio.gather(end_all(), *(ask(Random(number)) for number in range(50)))
    assert await shards.on(node, "PING") is True
    await ended.aclose()
    await shards.close()


async def until_whole(engine: Engine) -> None:
    for _ in range(300):
        if not (await engine.ask(QUESTIONS[0], fresh=True)).partial:
            return
        await asyncio.sleep(0.1)


async def test_while_a_node_hangs_the_others_answer_and_once_it_goes_on_all_do(
    doomed: LocalCluster, engine: Engine
) -> None:
    victim = doomed.state.nodes[2]
    assert victim.process is not None
    os.kill(victim.process.pid, signal.SIGSTOP)
    try:
        partial = [await engine.ask(question, fresh=True) for question in QUESTIONS]
    finally:
        os.kill(victim.process.pid, signal.SIGCONT)
    assert {tuple(answer.failed) for answer in partial} == {(f"127.0.0.1:{victim.port}",)}
    assert any(answer.answer for answer in partial)
    await until_whole(engine)
    whole = [await engine.ask(question, fresh=True) for question in QUESTIONS]
    assert [answer.answer for answer in whole] == [f"{builder} Lund" for builder in BUILDERS]


async def test_while_a_worker_hangs_the_others_answer_and_it_is_replaced(doomed: LocalCluster, engine: Engine) -> None:
    await until_whole(engine)
    victim = doomed.state.nodes[2]
    async with Redis(port=victim.port) as node:
        pid = int((await node.info("shardqa"))["shardqa_worker_pid"])
        os.kill(pid, signal.SIGSTOP)
        answers = [await engine.ask(question, fresh=True) for question in QUESTIONS[:3]]
        assert {tuple(answer.failed) for answer in answers} == {(f"127.0.0.1:{victim.port}",)}
        assert any(f"127.0.0.1:{victim.port}: " in problem for problem in await engine.cluster.problems())
        await until_whole(engine)
        told = await node.info("shardqa")
    assert told["shardqa_worker_pid"] != pid
    assert told["shardqa_worker_last_end"].startswith("it did not answer")


async def test_a_look_at_the_readiness_does_not_wait_for_a_node_that_hangs(
    doomed: LocalCluster, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    await until_whole(engine)
    monkeypatch.setattr(liveness, "PATIENCE_SECONDS", 60.0)  # nobody else finds out
    victim = doomed.state.nodes[2]
    assert victim.process is not None
    os.kill(victim.process.pid, signal.SIGSTOP)
    try:
        async with asyncio.timeout(20):  # of the 30 that a request may take
            answers, problems = await engine.cluster.readiness()
    finally:
        os.kill(victim.process.pid, signal.SIGCONT)
    assert answers
    assert problems == [f"127.0.0.1:{victim.port}: it did not answer within {cluster_view.LOOK_SECONDS:g} s"]
    monkeypatch.undo()
    await until_whole(engine)


async def test_a_look_at_the_topology_does_not_wait_for_a_node_that_hangs(
    doomed: LocalCluster, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    await until_whole(engine)
    victim = doomed.state.nodes[2]
    assert victim.process is not None
    looks = count()

    def hanging_first(nodes: list[ClusterNode]) -> None:  # at the first look, last at all others
        nodes.sort(key=lambda node: (int(node.port) == victim.port) is (next(looks) > 0))

    monkeypatch.setattr("redis.asyncio.cluster.random.shuffle", hanging_first)
    monkeypatch.setattr(connections, "LOOK_SECONDS", 0.2)
    os.kill(victim.process.pid, signal.SIGSTOP)
    try:
        async with asyncio.timeout(20):  # of the 30 that a request may take
            await engine.shards._look()
    finally:
        os.kill(victim.process.pid, signal.SIGCONT)
    assert next(looks) > 1
    await until_whole(engine)


def new_question(engine: Engine, port: int) -> str:
    """One whose final answer would be kept on the node at that port."""
    epochs = engine.epochs.known("towns")
    assert epochs is not None
    settings = engine.settings
    for n in range(1_000):
        question = keys.normalise_question(f"{QUESTIONS[0]} Version {n}")
        key = keys.ask("towns", keys.corpus_epoch(epochs), settings.model, settings.k, settings.sure, question)
        if int(engine.shards.owner(key).port) == port:
            return question
    pytest.fail("no question in 1,000")


async def test_a_hanging_node_that_would_keep_the_final_answer_does_not_keep_it_from_being_found(
    doomed: LocalCluster, engine: Engine
) -> None:
    await until_whole(engine)
    victim = doomed.state.nodes[2]  # the epochs are followed on the first
    assert victim.process is not None
    question = new_question(engine, victim.port)
    os.kill(victim.process.pid, signal.SIGSTOP)
    try:
        answer = await engine.ask(question)
    finally:
        os.kill(victim.process.pid, signal.SIGCONT)
    assert answer.failed == [f"127.0.0.1:{victim.port}"]
    await until_whole(engine)


@pytest.fixture
def swallowing() -> Iterator[int]:
    """A port of a host that is gone without a word: whoever connects waits. (Its queue of connections is full.)"""
    with ExitStack() as opened:
        host = opened.enter_context(socket.socket())
        host.bind(("127.0.0.1", 0))
        host.listen(0)
        for _ in range(4):
            caller = opened.enter_context(socket.socket())
            caller.setblocking(False)
            caller.connect_ex(host.getsockname())
        yield host.getsockname()[1]


async def test_a_host_that_is_gone_without_a_word_counts_as_a_node_that_is_down(
    doomed: LocalCluster, swallowing: int
) -> None:
    shards = await Shards.connect(settings_of(doomed, timeout=30))
    gone = copy(shards.nodes()[0])
    gone.port, gone.name = swallowing, f"127.0.0.1:{swallowing}"
    gone.connection_kwargs = {**gone.connection_kwargs, "port": swallowing}
    gone._free, gone._connections = deque(), []
    try:
        for _ in range(3):
            with pytest.raises(ClusterUnavailable, match="silent"):
                await shards.on(gone, "PING")
    finally:
        await shards.close()
