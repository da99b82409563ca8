"""A node that is killed, or hangs, while it is asked and ingested into: the others answer, and nothing is lost."""

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from copy import copy
from itertools import count
from random import Random
from typing import Any

import orjson
import pytest
from redis.asyncio import Redis
from redis.asyncio.cluster import ClusterNode

from shardqa import keys
from shardqa.cluster import local
from shardqa.cluster.local import ClusterOptions, LocalCluster
from shardqa.config import Settings
from shardqa.engine import Engine, cluster_view, connections, liveness
from shardqa.engine.connections import Shards
from shardqa.errors import AnswerTimeout, ClusterUnavailable
from shardqa.files.source_file import Item, Skipped
from shardqa.loader import ingest
from shardqa.loader.summary import Summary
from shardqa.schema import Answer, Document
from tests.cluster.shards_client import Shards as ShardsClient
from tests.cluster.shards_client import story
from tests.nodes import hanging, kill_node, process_of, settings_of, wait_until

TOWNS = ["Arnsby", "Belmore", "Corvin", "Dunwick", "Estrel", "Farholm", "Gilmere", "Hartwell", "Ilvane", "Jessop"]
BUILDERS = ["Ada", "Bruno", "Clara", "Doris", "Emil", "Frida", "Georg", "Hanna", "Ivar", "Johanna"]
NAMES = [f"{builder} Lund" for builder in BUILDERS]
QUESTIONS = [f"Who built the lighthouse of {town}?" for town in TOWNS]
STORIES = 300


@pytest.fixture(scope="module")
def doomed(start_cluster: Callable[..., LocalCluster]) -> LocalCluster:
    """Three shards that these tests may harm, and that lose nothing they acknowledged (everysec may, for 2 s)."""
    return start_cluster(shards=3, extra=(("appendfsync", "always"),))


@pytest.fixture
async def engine(doomed: LocalCluster) -> AsyncIterator[Engine]:
    """An engine that knows the towns, once all shards answer."""
    engine = await Engine.connect(settings_of(doomed, corpus="towns", timeout=90))
    for town, name in zip(TOWNS, NAMES, strict=True):
        await engine.documents.put(Document(id=town, title=town, text=story_of(town, name)))
    await until_whole(engine)
    yield engine
    await engine.close()


def story_of(town: str, name: str) -> str:
    return f"The lighthouse of {town} was built by {name} in 1850. It still stands on the cliff."


def port_of(cluster: LocalCluster, number: int) -> int:
    return cluster.addresses[number][1]


def towns_on(engine: Engine, port: int) -> list[str]:
    return [town for town in TOWNS if engine.shards.owner(keys.doc("towns", town)).port == port]


@contextmanager
def down(cluster: LocalCluster, number: int) -> Iterator[str]:
    """The n-th node is killed, and started again in the end; its address."""
    kill_node(cluster, number)
    try:
        yield f"127.0.0.1:{port_of(cluster, number)}"
    finally:
        local.start(ClusterOptions(data=cluster.data))


@contextmanager
def still(cluster: LocalCluster, number: int) -> Iterator[str]:
    """The n-th node hangs; its address."""
    with hanging(process_of(cluster, number).pid):
        yield f"127.0.0.1:{port_of(cluster, number)}"


def cli(cluster: LocalCluster, *words: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "SHARDQA_REDIS": cluster.seed()}
    return subprocess.run(
        [sys.executable, "-m", "shardqa", *words], env=env, capture_output=True, text=True, timeout=90, check=False
    )


async def answers(engine: Engine) -> list[Answer]:
    return [await engine.ask(question, fresh=True) for question in QUESTIONS]


async def until_whole(engine: Engine) -> None:
    for _ in range(300):
        if not (await engine.ask(QUESTIONS[0], fresh=True)).partial:
            return
        await asyncio.sleep(0.1)


def place(answer: Answer) -> tuple[object, ...]:
    return answer.answer, answer.document, answer.start, answer.end, answer.score


async def test_after_kill_9_and_a_restart_every_answer_is_what_it_was(doomed: LocalCluster, engine: Engine) -> None:
    before = await answers(engine)
    assert [answer.answer for answer in before] == NAMES
    towns = towns_on(engine, port_of(doomed, 1))
    with down(doomed, 1) as victim:
        partial = await answers(engine)
        listed, overview = (cli(doomed, *words) for words in (["ls", "--corpus", "towns", "--json"], []))
        some = [towns[0], next(town for town in TOWNS if town not in towns)]
        shown = [cli(doomed, "show", town, "--corpus", "towns").returncode for town in some]
    assert (listed.returncode, json.loads(listed.stdout)["failed"]) == (4, [victim])
    assert {one["id"] for one in json.loads(listed.stdout)["documents"]} == {*TOWNS} - {*towns}
    assert (overview.returncode, "at least" in overview.stdout, victim in overview.stderr) == (4, True, True)
    assert shown == [4, 0]
    assert {(answer.partial, *answer.failed) for answer in partial} == {(True, victim)}
    for town, name, answer in zip(TOWNS, NAMES, partial, strict=True):
        assert town in towns or answer.answer == name
    after = await answers(engine)
    assert [place(answer) for answer in after] == [place(answer) for answer in before]
    assert not any(answer.partial for answer in after)


async def test_a_corpus_that_changes_between_ranking_and_reading_is_read_without_the_shards_that_are_down(
    doomed: LocalCluster, engine: Engine
) -> None:
    town = next(town for town in TOWNS if town not in towns_on(engine, port_of(doomed, 1)))
    owner = engine.shards.owner(keys.doc("towns", town))
    question = keys.normalise_question(f"Who built the lighthouse of {town}? Tell")
    ranked = await engine.ranking.rank(engine.question(question, corpus="towns"), 5)
    (tag,) = {passage.tag for passage in ranked.passages if passage.node == owner.name}
    with down(doomed, 1):
        await engine.documents.put(Document(id=town, title=town, text=story_of(town, "Zoe Lund")))
        key = keys.answer("towns", tag, ranked.epochs["towns", tag], engine.settings.model, 1, question)
        reply = orjson.loads(await engine.shards.on(owner, "GET", key))
        assert reply["spans"][0]["text"] == "Zoe Lund"
        assert not await engine.shards.on(owner, "EXISTS", key)


async def test_a_node_that_restarts_between_questions_is_missed_by_none_of_them(
    doomed: LocalCluster, engine: Engine
) -> None:
    await asyncio.gather(*(engine.ask(question, fresh=True) for question in QUESTIONS))  # many connections are kept
    with down(doomed, 0):
        pass
    assert await engine.documents.get("towns", towns_on(engine, port_of(doomed, 0))[0]) is not None
    whole = await asyncio.gather(*(engine.ask(question, fresh=True) for question in QUESTIONS))
    assert [(answer.answer, answer.partial) for answer in whole] == [(name, False) for name in NAMES]


@pytest.mark.parametrize("harm", [still, down])
async def test_an_engine_connects_while_a_master_hangs_or_is_down(
    doomed: LocalCluster, harm: Callable[[LocalCluster, int], AbstractContextManager[str]]
) -> None:
    """Nothing replaces it, so it stays among the masters."""
    with harm(doomed, 0):
        async with await Engine.connect(Settings(redis=f"127.0.0.1:{port_of(doomed, 1)}")) as engine:
            assert len(engine.shards.nodes()) == 3


async def test_connections_that_end_while_others_take_them_are_passing_faults_at_most(doomed: LocalCluster) -> None:
    shards = await Shards.connect(settings_of(doomed, timeout=90))
    node = shards.nodes()[0]
    killer = Redis(host=node.host, port=int(node.port))

    async def ask(pauses: Random) -> None:
        for _ in range(100):
            with suppress(ClusterUnavailable, AnswerTimeout):
                await shards.on(node, "PING")
            await asyncio.sleep(pauses.random() * 0.01)

    async def end_all() -> None:
        for _ in range(15):
            await asyncio.sleep(0.03)
            await killer.execute_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")

    await asyncio.gather(end_all(), *(ask(Random(number)) for number in range(50)))
    assert await shards.on(node, "PING") is True
    await killer.aclose()
    await shards.close()


async def test_while_a_node_hangs_the_others_answer_and_once_it_goes_on_all_do(
    doomed: LocalCluster, engine: Engine
) -> None:
    with still(doomed, 2) as victim:
        partial = await answers(engine)
    assert {tuple(answer.failed) for answer in partial} == {(victim,)}
    assert any(answer.answer for answer in partial)
    await until_whole(engine)
    assert [answer.answer for answer in await answers(engine)] == NAMES


async def test_while_a_worker_hangs_the_others_answer_and_it_is_replaced(doomed: LocalCluster, engine: Engine) -> None:
    victim = f"127.0.0.1:{port_of(doomed, 2)}"
    async with Redis(port=port_of(doomed, 2)) as node:
        pid = int((await node.info("shardqa"))["shardqa_worker_pid"])
        os.kill(pid, signal.SIGSTOP)
        partial = [await engine.ask(question, fresh=True) for question in QUESTIONS[:3]]
        assert {tuple(answer.failed) for answer in partial} == {(victim,)}
        assert any(f"{victim}: " in problem for problem in await engine.cluster.problems())
        await until_whole(engine)
        info = await node.info("shardqa")
    assert info["shardqa_worker_pid"] != pid
    assert info["shardqa_worker_last_end"].startswith("it did not answer")


async def test_a_look_at_the_readiness_does_not_wait_for_a_node_that_hangs(
    doomed: LocalCluster, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(liveness, "PATIENCE_SECONDS", 60.0)  # nobody else finds out
    with still(doomed, 2) as victim:
        async with asyncio.timeout(20):  # of the 30 that a request may take
            responds, problems = await engine.cluster.readiness()
    assert responds
    assert problems == [f"{victim}: it did not answer within {cluster_view.LOOK_SECONDS:g} s"]


async def test_a_look_at_the_topology_does_not_wait_for_a_node_that_hangs(
    doomed: LocalCluster, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = count()

    def hanging_first(nodes: list[ClusterNode]) -> None:  # at the first look, last at all others
        nodes.sort(key=lambda node: (int(node.port) == port_of(doomed, 2)) is (next(looks) > 0))

    monkeypatch.setattr("redis.asyncio.cluster.random.shuffle", hanging_first)
    monkeypatch.setattr(connections, "LOOK_SECONDS", 0.2)
    with still(doomed, 2):
        async with asyncio.timeout(20):  # of the 30 that a request may take
            await engine.shards._look()
    assert next(looks) > 1


def new_question(engine: Engine, port: int) -> str:
    """A question whose final answer would be kept on the node at that port."""
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
    question = new_question(engine, port_of(doomed, 2))  # the epochs are followed on the first
    with still(doomed, 2) as victim:
        answer = await engine.ask(question)
    assert answer.failed == [victim]


@pytest.fixture
def swallowing() -> Iterator[int]:
    """A port of a host that is gone without a word: whoever connects waits. (Its queue of connections is full.)"""
    with ExitStack() as stack:
        host = stack.enter_context(socket.socket())
        host.bind(("127.0.0.1", 0))
        host.listen(0)
        for _ in range(4):
            caller = stack.enter_context(socket.socket())
            caller.setblocking(False)
            caller.connect_ex(host.getsockname())
        yield host.getsockname()[1]


async def test_a_host_that_is_gone_without_a_word_counts_as_a_node_that_is_down(
    doomed: LocalCluster, swallowing: int
) -> None:
    shards = await Shards.connect(settings_of(doomed, timeout=90))
    silent: Any = copy(shards.nodes()[0])
    silent.port, silent.name = swallowing, f"127.0.0.1:{swallowing}"
    silent.connection_kwargs = {**silent.connection_kwargs, "port": swallowing}
    silent._free, silent._connections = deque(), []
    try:
        for _ in range(3):
            with pytest.raises(ClusterUnavailable, match="silent"):
                await shards.on(silent, "PING")
    finally:
        await shards.close()


# ---- ingesting


class Stories:
    """Documents, and among them one that is unfit and one whose id was met before."""

    total = STORIES

    def done(self) -> int:
        return 0

    def __iter__(self) -> Iterator[Item]:
        for n in range(STORIES):
            yield Document(id=f"story-{n}", text=f"Story {n}. The miller of village {n} had {n + 2} sons. " * 20)
        yield Skipped("nowhere", "unfit")
        yield Document(id="story-1", text="A second one of the same id.")


async def test_a_node_killed_on_the_way_loses_no_document(doomed: LocalCluster, engine: Engine, corpus: str) -> None:
    restarts: list[asyncio.Task[LocalCluster]] = []

    def progress(summary: Summary) -> None:
        if not restarts and summary.documents >= 50:
            kill_node(doomed, 1)
            restarts.append(asyncio.create_task(asyncio.to_thread(local.start, ClusterOptions(data=doomed.data))))

    summary = await ingest.ingest(engine, Stories(), corpus, progress)
    await restarts[0]
    assert summary.documents + summary.unchanged == STORIES
    assert [skipped.reason for skipped in summary.reasons] == ["unfit", "the id 'story-1' was met before, in "]
    again = await ingest.ingest(engine, Stories(), corpus)
    assert (again.documents, again.unchanged) == (0, STORIES)
    (info,) = (info for info in (await engine.catalogue.corpora()).corpora if info.name == corpus)
    assert info.documents == STORIES


async def test_a_node_that_stays_away_ends_the_ingest_with_its_name(
    doomed: LocalCluster, engine: Engine, corpus: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ingest, "FAILOVER_SECONDS", 0.5)
    told = list[Summary]()
    with down(doomed, 1) as victim, pytest.raises(ClusterUnavailable, match=rf"{victim}|down"):
        await ingest.ingest(engine, Stories(), corpus, told.append)
    assert told[-1].documents > 0, "what the others took is counted"


def test_a_big_document_whose_node_was_killed_meanwhile_becomes_whole(
    doomed: LocalCluster, connect: Callable[[LocalCluster], ShardsClient]
) -> None:
    shards = connect(doomed)
    before = shards.ingest("doc", "The old text of the mill.")
    key, client = shards.doc("doc"), shards.redis(shards.doc("doc"))
    connection = client.connection_pool.get_connection()
    connection.send_command("RG.TRIGGERONKEY", "Ingest", key, "text", story(900_000))
    wait_until(lambda: int(client.hget(key, "passages")) > before["passages"], "the first frame is written")
    assert not client.hexists(key, "digest")
    ports = [port for _, port in doomed.addresses]
    with down(doomed, ports.index(connection.port)):
        pass
    again = connect(doomed)
    wait_until(lambda: again.redis(key).hexists(key, "digest"), "the document is done again", 60)
    last = again.ingest("doc", story(900_000))
    assert not last["changed"]
    assert again.belongings("doc") == 2 * last["passages"]
