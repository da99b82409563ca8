"""Small documents that travel together: rows of a table."""

import json
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from redis import ResponseError

from shardqa import keys
from shardqa.cluster.local import LocalCluster
from shardqa.engine import Engine
from shardqa.schema import Document, Ingested
from tests.cluster.shards_client import Shards
from tests.cluster.test_quarantine import POISON
from tests.nodes import wait_until

PLACES = json.dumps([[0, {"row": 7, "cells": [["ferry", "Berta"], ["berth", "4"]]}]])


def of_one_shard(shards: Shards, count: int) -> list[str]:
    """Names of documents that one node has."""
    names = (f"ferries.csv/{n}" for n in range(100_000))
    owner = shards.client.get_node_from_key(shards.doc("ferries.csv/0"))
    here = (name for name in names if shards.client.get_node_from_key(shards.doc(name)) == owner)
    return [name for name, _ in zip(here, range(count), strict=False)]


def send(shards: Shards, documents: Sequence[tuple[str, str]], **more: str) -> Any:
    """The outcome of each: [passages, characters, changed] or None."""
    rest = [word for pair in more.items() for word in pair]
    listed = [(shards.doc(name), ["text", text, "title", f"Row {name}", *rest]) for name, text in documents]
    return shards.on_key("IngestMany", documents[0][0], json.dumps(listed))["documents"]


def hashes(shards: Shards, name: str) -> list[Any]:
    """The document, its passage and its pieces, as they lie in Redis."""
    redis, passage = shards.redis(shards.doc(name)), keys.passage(shards.corpus, name, 0)
    pieces = redis.execute_command("AI.TENSORGET", keys.tokens(shards.corpus, name, 0), "BLOB")
    return [redis.hgetall(shards.doc(name)), redis.hgetall(passage), pieces]


def test_documents_that_travel_together_become_what_each_alone_would(shards: Shards) -> None:
    names = of_one_shard(shards, 150)
    rows = [(name, f"Ferry Berta has berth: {n}.") for n, name in enumerate(names)]
    assert send(shards, rows, places=PLACES, metadata='{"berth": "4"}') == [[1, len(text), True] for _, text in rows]
    together = hashes(shards, names[70])
    assert shards.documents("Which berth has number 70?")[0] == names[70]
    shards.delete(names[70])
    shards.ingest(names[70], rows[70][1], f"Row {names[70]}", places=PLACES, metadata='{"berth": "4"}')
    assert hashes(shards, names[70]) == together
    assert send(shards, rows, places=PLACES, metadata='{"berth": "4"}') == [[1, len(text), False] for _, text in rows]


def test_of_a_second_upload_only_the_rows_that_changed_are_written(shards: Shards) -> None:
    names = of_one_shard(shards, 4)
    send(shards, [(name, "Ferry Berta has berth: 4.") for name in names])
    texts = ["Ferry Berta has berth: 4.", "Ferry Alma has berth: 5."] * 2
    assert [outcome[2] for outcome in send(shards, list(zip(names, texts, strict=True)))] == [False, True] * 2
    assert shards.passages(names[3])[0]["text"] == texts[3]
    assert shards.documents("Who has the ferry Alma?")[:2] in ([names[1], names[3]], [names[3], names[1]])


def test_what_has_to_go_alone_is_left_to_its_client(shards: Shards) -> None:
    free, _, other_writers = of_one_shard(shards, 3)
    owner = shards.client.get_node_from_key(shards.doc(free))
    elsewhere = next(
        n for n in map("elsewhere/{}".format, range(99)) if shards.client.get_node_from_key(shards.doc(n)) != owner
    )
    shards.ingest(other_writers, "Put by hand.")
    more = {"replace": "no", "origin": "ferries.csv"}
    rows = [(free, "Ferry Alma."), (other_writers, "Ferry Berta."), (f"{free}/empty", " "), (free, "Twice.")]
    assert send(shards, rows, **more) == [[1, 11, True], None, None, None]
    assert send(shards, [(free, "Ferry Alma."), (elsewhere, "Ferry Clara.")], **more)[1] is None
    assert shards.passages(other_writers)[0]["text"] == "Put by hand."
    with pytest.raises(ResponseError, match="bad_data"):
        shards.on_key("IngestMany", free, "[1]")


async def test_of_documents_of_one_id_the_last_stays(engine: Engine, corpus: str) -> None:
    texts = [f"Ferry {n % 3} has berth: {n}." for n in range(9)]
    documents = [Document(id=text[:7], corpus=corpus, text=text) for text in texts]
    outcomes = await engine.together.put_each(documents)
    assert [outcome.changed for outcome in outcomes if isinstance(outcome, Ingested)] == [True] * 9
    stored = [await engine.documents.get(corpus, f"Ferry {n}") for n in range(3)]
    assert [one.text for one in stored if one is not None] == texts[6:]


def test_a_row_that_ends_the_worker_sets_no_other_aside(
    start_cluster: Callable[..., LocalCluster], connect: Callable[[LocalCluster], Shards]
) -> None:
    shards = connect(start_cluster(shards=1))
    rows = [("a", "Ferry Alma."), ("bad", "POISON in the well"), ("c", "Ferry Clara.")]
    redis = shards.redis(shards.doc("a"))
    redis.execute_command("RG.PYEXECUTE", POISON, "ID", "poison")
    with pytest.raises(ResponseError, match="the worker of this node died"):
        send(shards, rows)
    wait_until(lambda: redis.execute_command("RG.TRIGGER", "Shard"), "the worker is back")
    assert send(shards, rows) == [[1, 11, True], None, [1, 12, True]]
