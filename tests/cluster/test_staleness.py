"""No answer from text that is gone, and no text that is never found: what events miss, and what engines remember."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest
from redis import Redis

from shardqa import keys
from shardqa.cluster.local import LocalCluster
from shardqa.engine import Engine
from shardqa.errors import ClusterUnavailable, UnknownCorpus
from shardqa.loader import preparation
from shardqa.schema import Answer, Document
from tests.cluster.shards_client import Shards
from tests.nodes import settings_of, wait_until
from tests.workers import kill_worker, ready_worker

MILL = "The mill at Hallow Ford was built in 1742 by the brothers Anders and Jon Lindqvist. It ground rye until 1911."
QUESTION = "When was the mill at Hallow Ford built?"
LONG = "".join(f"In the year {1000 + n} the miller of Hallow Ford said the harvest was good. " for n in range(900))


@pytest.fixture
def lone(one_shard: LocalCluster, connect: Callable[[LocalCluster], Shards]) -> Shards:
    """A shard that these tests may harm."""
    return connect(one_shard)


def end_worker(client: Any) -> int:
    pid = kill_worker(client)
    wait_until(lambda: client.info("shardqa")["shardqa_worker_state"] != "ready", "Redis saw the worker die")
    return pid


def test_documents_written_changed_and_removed_while_the_worker_was_dead_are_settled(lone: Shards) -> None:
    lone.ingest("changed", MILL)
    lone.ingest("removed", MILL)
    client = lone.redis(lone.doc("changed"))
    epoch = lone.tag_of("changed")[1]
    pid = end_worker(client)
    client.hset(lone.doc("new"), mapping={"text": "The bridge at Tarn was opened in 1803 by a queen."})
    client.hset(lone.doc("changed"), "text", MILL.replace("1742", "1688"))
    client.delete(lone.doc("removed"))
    ready_worker(client, but_not=[pid])
    wait_until(lambda: lone.documents("who opened the bridge at Tarn") == ["new"], "the new one is found")
    wait_until(lambda: lone.documents("mill") == ["changed"], "the removed one is gone")
    wait_until(lambda: "1688" in lone.passages("changed")[0]["text"], "the changed one is the new text")
    assert lone.tag_of("changed")[1] > epoch
    assert lone.belongings("removed") == 0


def test_a_document_that_an_earlier_version_cut_otherwise_is_cut_anew_at_start(lone: Shards) -> None:
    lone.ingest("mill", MILL)
    client, key = lone.redis(lone.doc("mill")), lone.doc("mill")
    digest, before = client.hget(key, "digest"), lone.passages("mill")
    pid = end_worker(client)
    client.hset(keys.passage(lone.corpus, "mill", 0), "text", "The mill")
    client.hset(key, "digest", "of an earlier splitting.VERSION")
    ready_worker(client, but_not=[pid])
    wait_until(lambda: client.hget(key, "digest") == digest, "it is cut anew")
    assert lone.passages("mill") == before


def test_each_part_of_a_large_document_is_announced_as_it_is_written(lone: Shards) -> None:
    client = lone.redis(lone.doc("long"))
    with client.pubsub(ignore_subscribe_messages=True) as channel:
        channel.subscribe(keys.EPOCH_CHANNEL)
        assert lone.ingest("long", LONG)["passages"] > 64
        heard = [message for _ in range(6) if (message := channel.get_message(timeout=1)) is not None]
    assert len([m for m in heard if m["data"].startswith(lone.corpus.encode() + b" ")]) >= 2


def test_a_passage_whose_tokens_are_gone_is_read_all_the_same(lone: Shards) -> None:
    lone.ingest("mill", MILL)
    client = lone.redis(lone.doc("mill"))
    client.delete(keys.tokens(lone.corpus, "mill", 0))
    reply = json.loads(client.get(lone.answer_key("mill", QUESTION)))
    assert reply["spans"][0]["text"] == "1742"


def test_a_count_of_passages_that_is_not_ours_harms_nothing(lone: Shards) -> None:
    lone.ingest("mill", MILL)
    client = lone.redis(lone.doc("mill"))
    for count in ("99999999999999", "100000000", "no number", "-1"):
        client.hset(lone.doc("mill"), "passages", count)
        lone.ingest("mill", MILL + count)
        assert len(lone.passages("mill")) == 1
    client.hset(lone.doc("mill"), "passages", "100000000")
    assert lone.delete("mill")["deleted"]
    assert lone.belongings("mill") == 0


def test_deleting_in_a_corpus_that_is_none_makes_none(lone: Shards) -> None:
    assert not lone.delete("nothing")["deleted"]
    (reply,) = lone.all("RG.TRIGGER", "Corpora")
    assert lone.corpus not in reply["corpora"]


async def test_a_user_that_does_not_exist_is_refused_with_or_without_a_password(one_shard: LocalCluster) -> None:
    for password in (None, "s3cret"):
        with pytest.raises(ClusterUnavailable, match="refuses this user"):
            await Engine.connect(settings_of(one_shard, user="nobody", password=password))


async def test_more_questions_at_once_than_a_client_usually_has_connections_are_all_answered(
    one_shard: LocalCluster, corpus: str
) -> None:
    engine = await Engine.connect(settings_of(one_shard, corpus=corpus, timeout=60))
    try:
        await engine.documents.put(Document(id="mill", text=MILL))
        answers = await asyncio.gather(
            *(engine.ranking.rank(engine.question(f"mill {n}", corpus=corpus), 1) for n in range(150))
        )
        assert all(not answer.failed for answer in answers)
    finally:
        await engine.close()


async def until(engine: Engine, holds: Callable[[Answer], bool]) -> None:
    """Asks again and again, bounded."""
    for _ in range(100):
        if holds(await engine.ask(QUESTION)):
            return
        await asyncio.sleep(0.05)
    pytest.fail("asked 100 times in vain")


async def test_an_engine_forgets_its_answers_when_a_shard_is_flushed(one_shard: LocalCluster, corpus: str) -> None:
    engine = await Engine.connect(settings_of(one_shard, corpus=corpus, timeout=90))
    try:
        await engine.documents.put(Document(id="mill", text=MILL))
        await until(engine, lambda answer: answer.cache == "process")
        with Redis(port=one_shard.state.port) as client:
            client.flushall()
        with pytest.raises(UnknownCorpus):
            await until(engine, lambda answer: answer.answer is None)
        (problem,) = await engine.cluster.problems()  # the reader went with the rest
        assert "run 'shardqa prepare'" in problem
    finally:
        await preparation.prepare(engine)
        await engine.close()
