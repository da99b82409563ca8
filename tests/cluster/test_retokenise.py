"""A corpus is cut anew across the cluster while questions go on being answered."""

import asyncio
from collections.abc import Callable

import pytest

from shardqa import keys
from shardqa.cluster.local import LocalCluster
from shardqa.engine import Engine
from shardqa.errors import UnknownCorpus
from shardqa.schema import Document, Retokenised
from tests.cluster.conftest import Output
from tests.cluster.shards_client import Shards
from tests.nodes import wait_until

COUNT = 40
TEXT = "Ferry {n} was built at Skerrow in {year}. " + "The crossing takes a while and the crew is friendly. " * 20


async def filled(engine: Engine) -> None:
    puts = (
        engine.documents.put(Document(id=f"d{n}", title=f"Ferry {n}", text=TEXT.format(n=n, year=1900 + n)))
        for n in range(COUNT)
    )
    await asyncio.gather(*puts)


def spoilt(shards: Shards, documents: list[str]) -> dict[str, bytes]:
    """Makes the word pieces of a passage wrong, as a fault of an earlier version might have; what they were."""
    before = {}
    for document in documents:
        client, name = shards.redis(shards.doc(document)), keys.tokens(shards.corpus, document, 1)
        before[name] = client.execute_command("AI.TENSORGET", name, "BLOB")
        client.execute_command("AI.TENSORSET", name, "INT32", 2, "VALUES", 7, 7)
    return before


async def test_wrong_word_pieces_are_mended_while_questions_are_answered(engine: Engine, shards: Shards) -> None:
    await filled(engine)
    before = spoilt(shards, ["d3", "d17", "d30"])
    removed = keys.tokens(shards.corpus, "d5", 0)
    before[removed] = shards.redis(removed).execute_command("AI.TENSORGET", removed, "BLOB")
    shards.redis(removed).delete(removed)

    async def run() -> list[Retokenised]:
        return [now async for now in engine.retokenising.run()]

    running, n = asyncio.create_task(run()), 0
    while n < 5 or not running.done():
        answer = await engine.ask(f"When was ferry {n % COUNT} built at Skerrow?")
        assert not answer.partial
        assert answer.document, "it is answered from the documents"
        n += 1
    steps = await running
    last = steps[-1]
    assert (last.documents, last.done, last.changed, last.failed) == (COUNT, COUNT, 4, 0)
    assert [now.done for now in steps] == sorted(now.done for now in steps)
    assert {name: shards.redis(name).execute_command("AI.TENSORGET", name, "BLOB") for name in before} == before
    epochs = dict(map(shards.tag_of, ("d1", "d2", "d3")))
    again = (await run())[-1]
    assert (again.done, again.changed) == (COUNT, 0)
    assert dict(map(shards.tag_of, ("d1", "d2", "d3"))) == epochs, "what is right stays, with its answers"


async def test_a_corpus_that_is_not_there_is_named(engine: Engine) -> None:
    with pytest.raises(UnknownCorpus):
        _ = [now async for now in engine.retokenising.run("nobody-wrote-this")]


def test_the_program_does_it_and_counts(cluster: LocalCluster, shards: Shards, program: Callable[..., Output]) -> None:
    for n in range(6):
        shards.ingest(f"d{n}", TEXT.format(n=n, year=1900 + n))
    spoilt(shards, ["d2"])
    counts = program("corpus", "retokenise", "--corpus", shards.corpus, "--json", "--redis", cluster.seed()).json
    assert (counts["documents"], counts["done"], counts["changed"], counts["failed"]) == (6, 6, 1, 0)


def test_one_document_on_its_own_shard(shards: Shards) -> None:
    shards.ingest("only", TEXT.format(n=1, year=1901))
    assert shards.on_key("RetokeniseOne", "only") == {"changed": False}
    spoilt(shards, ["only"])
    assert shards.on_key("RetokeniseOne", "only") == {"changed": True}


def test_a_document_that_fails_is_told_and_the_others_are_done(shards: Shards) -> None:
    shards.ingest("good", TEXT.format(n=1, year=1901))
    bad = keys.doc(shards.corpus, "bad")
    shards.redis(bad).hset(bad, "text", b"\xff\xfe not UTF-8")
    first = shards.client.get_redis_connection(shards.nodes()[0])
    first.execute_command("RG.TRIGGER", "Retokenise", shards.corpus, "begin")

    def failures() -> list[str]:
        parts = shards.all("RG.TRIGGER", "Retokenise", shards.corpus, "look")
        if any(part["running"] for part in parts) or sum(part["done"] for part in parts) < 2:
            return []
        return [error for part in parts for error in part["errors"]]

    (error,) = wait_until(failures, "the run has ended")
    assert "not UTF-8" in error
