"""Kept answers quote documents: what a change made useless leaves every node, and the files that it writes."""

from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from redis import Redis

from shardqa.cluster.local import LocalCluster
from shardqa.engine import Engine
from shardqa.schema import Document
from tests.nodes import settings_of, wait_until

NAME = "Quillfeather"
QUESTION = "Who built the mill at Hallow Ford?"
MILL = Document(id="mill", text=f"The mill at Hallow Ford was built in 1742 by {NAME}. It ground rye until 1911.")
INN = Document(id="inn", text="The inn at Tarn was opened in 1803 by a queen. It has nine rooms.")


@pytest.fixture(scope="module")
def replicated(start_cluster: Callable[..., LocalCluster]) -> LocalCluster:
    return start_cluster(shards=2, replicas=1)


@pytest.fixture
async def engine(replicated: LocalCluster, corpus: str) -> AsyncIterator[Engine]:
    async with await Engine.connect(settings_of(replicated, corpus=corpus)) as engine:
        await engine.documents.put(MILL)
        await engine.documents.put(INN)
        yield engine


def nodes(cluster: LocalCluster) -> list[Any]:
    return [Redis(host, port) for host, port in cluster.addresses]


def final(cluster: LocalCluster, corpus: str) -> set[bytes]:
    """Names of the final answers that any node has."""
    return {name for node in nodes(cluster) for name in node.keys(f"ask:{corpus}:*:*:*")}


def is_rewritten(node: Any) -> bool:
    return not node.info("persistence")["aof_rewrite_in_progress"]


def files_quoting(cluster: LocalCluster, text: str) -> list[Path]:
    """Names files of all nodes, after each has written its files anew."""
    for node in nodes(cluster):
        node.bgrewriteaof()
        wait_until(partial(is_rewritten, node), "the AOF is rewritten")
        node.save()
    files = [file for file in cluster.data.rglob("*") if file.suffix in (".aof", ".rdb")]
    assert len(files) >= 2 * len(nodes(cluster))
    return [file for file in files if text.encode() in file.read_bytes()]


async def deleted(engine: Engine, corpus: str) -> None:
    await engine.documents.delete(corpus, MILL.id)


async def replaced(engine: Engine, corpus: str) -> None:
    await engine.documents.put(MILL.model_copy(update={"text": MILL.text.replace(NAME, "Lindqvist")}))


async def dropped(engine: Engine, corpus: str) -> None:
    await engine.catalogue.drop(corpus)


@pytest.mark.parametrize("change", [deleted, replaced, dropped])
async def test_answers_that_quote_what_is_gone_leave_every_node_and_file(
    engine: Engine, replicated: LocalCluster, corpus: str, change: Callable[[Engine, str], Awaitable[None]]
) -> None:
    await engine.documents.put(INN.model_copy(update={"corpus": f"{corpus}-2"}))
    for corpora in (corpus, f"{corpus},{corpus}-2"):
        assert (await engine.ask(QUESTION, corpus=corpora)).answer == NAME
        assert final(replicated, corpora)
    await change(engine, corpus)
    wait_until(lambda: not files_quoting(replicated, NAME), "no file has the text")
    assert not final(replicated, corpus)


async def test_answers_that_still_hold_are_kept(engine: Engine, replicated: LocalCluster, corpus: str) -> None:
    await engine.ask(QUESTION)
    before = final(replicated, corpus)
    await engine.documents.put(INN.model_copy(update={"text": "The inn is closed."}))
    await engine.ask(QUESTION)
    wait_until(lambda: not before & final(replicated, corpus), "those of the former epochs are gone")
    async with await Engine.connect(engine.settings) as other:
        assert (await other.ask(QUESTION)).cache == "redis"
