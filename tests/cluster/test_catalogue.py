"""A corpus as a whole: its documents page by page, its sizes, and its end."""

import asyncio

import pytest

from shardqa.engine import Engine
from shardqa.errors import BadCursor, BadLimit, UnknownCorpus
from shardqa.schema import Document
from tests.cluster.shards_client import Shards

IDS = [f"note {number:02d} é/🦉.md" for number in range(40)]


async def put_all(engine: Engine) -> None:
    await asyncio.gather(
        *(
            engine.documents.put(
                Document(id=one, title=f"T{one}", text=f"The mill of {one} is old.", metadata={"n": number})
            )
            for number, one in enumerate(IDS)
        )
    )


async def test_pages_hold_every_document_once_with_what_is_known_of_it(engine: Engine, corpus: str) -> None:
    await put_all(engine)
    documents, cursor = [], None
    while True:
        page = await engine.catalogue.documents(limit=7, cursor=cursor)
        assert len(page.documents) == 7 or page.cursor is None
        documents += page.documents
        cursor = page.cursor
        if cursor is None:
            break
    assert sorted(one.id for one in documents) == IDS
    first = next(one for one in documents if one.id == IDS[0])
    assert (first.title, first.metadata, first.passages) == (f"T{IDS[0]}", {"n": 0}, 1)
    assert first.bytes == len(f"The mill of {IDS[0]} is old.".encode())
    info = (await engine.catalogue.corpus(corpus)).corpus
    assert info is not None
    assert (info.documents, info.bytes) == (40, sum(one.bytes for one in documents))


async def test_a_page_after_a_document_that_is_gone_goes_on_behind_it(engine: Engine, corpus: str) -> None:
    await put_all(engine)
    first = await engine.catalogue.documents(limit=5)
    await engine.documents.delete(corpus, first.documents[-1].id)
    rest = await engine.catalogue.documents(limit=1_000, cursor=first.cursor)
    assert len(rest.documents) == 35
    assert rest.cursor is None


async def test_what_no_list_can_be_of_is_refused(engine: Engine, corpus: str) -> None:
    await engine.documents.put(Document(id="one", text="The mill."))
    with pytest.raises(UnknownCorpus):
        await engine.catalogue.documents(f"{corpus}-none")
    for cursor in ("", "nonsense", "é", "YjAwMDE6b25l"):
        with pytest.raises(BadCursor):
            await engine.catalogue.documents(cursor=cursor)
    with pytest.raises(BadLimit):
        await engine.catalogue.documents(limit=0)


async def test_a_dropped_corpus_is_unsearchable_at_once_and_leaves_no_key(
    engine: Engine, shards: Shards, corpus: str
) -> None:
    await put_all(engine)
    await engine.catalogue.switch(corpus, "dense", False)
    await engine.catalogue.switch(corpus, "bridges", False)
    await engine.ask("How old is the mill?")
    dropped = await engine.catalogue.drop(corpus)
    assert dropped.documents == 40
    with pytest.raises(UnknownCorpus):
        await engine.ask("How old is the mill?")
    last = [step async for step in engine.catalogue.dropping(corpus)][-1]
    assert last.done
    left = [
        name for name in shards.client.scan_iter(f"*:{corpus}:*") if not name.startswith((b"answer", b"rank", b"ask"))
    ]
    assert {name.partition(b":")[0] for name in left} <= {b"epoch"}
    with pytest.raises(UnknownCorpus):
        await engine.catalogue.drop(corpus)
    await engine.documents.put(Document(id=IDS[0], text="The mill is new."))
    assert (await engine.ask("How old is the mill?")).corpus == corpus


@pytest.mark.parametrize("is_covered", [True, False])
async def test_a_master_that_the_topology_lacks_is_found_by_lists_and_drops(engine: Engine, is_covered: bool) -> None:
    """As where the node that was asked during a failover, or before a resharding, did not know it."""
    await put_all(engine)
    corpus = engine.settings.corpus
    listed = len((await engine.catalogue.documents(corpus)).documents)

    async def lose_one() -> None:
        manager = engine.shards._cluster.nodes_manager
        lost, *others = engine.shards.nodes()
        manager.nodes_cache.pop(str(lost.name))
        for slot in [slot for slot, nodes in manager.slots_cache.items() if nodes[0] is lost]:
            if is_covered:
                manager.slots_cache[slot] = [others[0]]
            else:
                del manager.slots_cache[slot]
        await lost.disconnect()

    await lose_one()
    assert len((await engine.catalogue.documents(corpus)).documents) == listed
    await lose_one()
    assert (await engine.catalogue.drop(corpus)).documents == listed
