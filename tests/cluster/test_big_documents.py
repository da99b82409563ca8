"""Texts of megabytes on their way in: others get in between, the run goes on, a killed node leaves nothing half."""

import asyncio
from collections.abc import Callable, Iterator
from itertools import count, islice

from shardqa.cluster.local import LocalCluster
from shardqa.config import Settings
from shardqa.engine import Engine
from shardqa.files.source_file import Item
from shardqa.gears_functions.shard.removal import PASSAGES_PER_UNLINK
from shardqa.loader import ingest
from shardqa.loader.summary import Summary
from shardqa.schema import Document
from tests.cluster.shards_client import Shards, story
from tests.nodes import settings_of, wait_until

MANY = 8  # more than a worker on a small machine has threads
SMALL = 40  # documents


class BigFirst:
    """One of 1.5 MB, then small ones."""

    total = SMALL + 1

    def done(self) -> int:
        return 0

    def __iter__(self) -> Iterator[Item]:
        yield Document(id="big", text=story(1_500_000))
        for n in range(SMALL):
            yield Document(id=f"small-{n}", text=f"Small village {n} has {n + 2} mills.")


async def test_small_documents_get_in_while_the_big_one_before_them_is_on_its_way(engine: Engine, corpus: str) -> None:
    figures = list[tuple[int, int]]()  # documents that are in, and their bytes

    def progress(summary: Summary) -> None:
        figures.append((summary.documents + summary.unchanged, summary.bytes))

    summary = await ingest.ingest(engine, BigFirst(), corpus, progress)
    assert (summary.documents + summary.unchanged, summary.skipped) == (SMALL + 1, 0)
    (before, small), (after, all_bytes) = figures[-2:]
    assert (before, after) == (SMALL, SMALL + 1)
    assert small < 1_000_000 < all_bytes  # the big one came last
    (info,) = (found for found in (await engine.catalogue.corpora()).corpora if found.name == corpus)
    assert info.documents == SMALL + 1


def test_a_small_document_does_not_wait_for_many_big_ones_on_its_shard(shards: Shards) -> None:
    small = shards.redis(shards.doc("small"))
    owned = (name for n in count() if shards.redis(shards.doc(name := f"big-{n}")) is small)
    big = [shards.doc(name) for name in islice(owned, MANY)]
    connections = [small.connection_pool.get_connection() for _ in big]
    texts = [story(400_000, n) for n in range(MANY)]
    for key, text, connection in zip(big, texts, connections, strict=True):
        connection.send_command("RG.TRIGGERONKEY", "Ingest", key, "text", text)
    shards.ingest("small", "The mill at Hallow Ford ground rye.")
    assert not any(small.exists(key) for key in big)
    wait_until(lambda: all(small.hexists(key, "digest") for key in big), "the big ones are in", 120)
    for connection in connections:
        connection.disconnect()


def unlinks(shards: Shards, document: str) -> int:
    found = shards.redis(shards.doc(document)).info("commandstats").get("cmdstat_unlink")
    return int(found["calls"]) if found else 0


def test_a_long_text_that_becomes_short_or_goes_holds_redis_for_no_more_than_a_few_hundred_passages_at_once(
    shards: Shards,
) -> None:
    long = story(420_000)
    assert shards.ingest("long", long)["passages"] > 2 * PASSAGES_PER_UNLINK
    before = unlinks(shards, "long")
    shards.ingest("long", "The mill at Hallow Ford ground rye.")
    assert unlinks(shards, "long") - before >= 3
    assert [one["text"] for one in shards.passages("long")] == ["The mill at Hallow Ford ground rye."]
    assert shards.belongings("long") == 2
    assert not any("miller" in one["text"] for one in shards.passages("long"))
    shards.ingest("long", long)
    before = unlinks(shards, "long")
    assert shards.delete("long")["passages"] > 2 * PASSAGES_PER_UNLINK
    assert unlinks(shards, "long") - before >= 3 + 3 + 1  # passages, an epoch each time, the document
    assert shards.belongings("long") == 0


def test_a_big_document_takes_longer_than_the_deadline_and_questions_go_on(
    start_cluster: Callable[..., LocalCluster],
) -> None:
    """The deadline is that of the module, for whatever gets no further."""
    cluster = start_cluster(shards=1, module_arguments=("TIMEOUT", "6000"))
    asyncio.run(_put_and_ask(settings_of(cluster, corpus="big", timeout=120)))


async def _put_and_ask(settings: Settings) -> None:
    engine = await Engine.connect(settings)
    await engine.documents.put(Document(id="mill", text="The mill at Hallow Ford was built by Ann Rudd."))
    putting = asyncio.create_task(engine.documents.put(Document(id="big", text=story(4_500_000))))
    answers, small = 0, 0
    while not putting.done():
        answer = await engine.ask("Who built the mill at Hallow Ford?", fresh=True)
        answers += answer.answer == "Ann Rudd"
        small += (
            await engine.documents.put(Document(id=f"small-{small}", text=f"Small village {small} has a mill."))
        ).changed
    put = await putting
    await engine.close()
    assert put.characters == 4_500_000
    assert answers >= 2
    assert small >= 2
