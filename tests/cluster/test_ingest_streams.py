"""Documents that clients put with XADD: each becomes one document, whatever dies meanwhile; none is lost unseen."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from shardqa import keys
from shardqa.cluster.local import LocalCluster
from shardqa.loader.preparation import CODE, SESSION
from tests.cluster.shards_client import Shards
from tests.compat.scripts import send
from tests.conftest import Output
from tests.nodes import Node, wait_until
from tests.workers import kill_worker

DURABLE = (("appendfsync", "always"), ("aof-use-rdb-preamble", "yes"))


def add(client: Any, stream: str, corpus: str, id: str, text: str, **more: str) -> None:
    client.xadd(stream, {"corpus": corpus, "id": id, "text": text, **more})


def is_ingested(shards: Shards, document: str) -> bool:
    return bool(shards.redis(shards.doc(document)).hexists(shards.doc(document), "digest"))


def all_are_ingested(shards: Shards, count: int) -> bool:
    return all(is_ingested(shards, f"d{n}") for n in range(count))


def totals(shards: Shards) -> dict[str, int]:
    """The sum of what the shards tell."""
    replies = shards.all("RG.TRIGGER", "Streams")
    return {name: sum(reply[name] for reply in replies) for name in ("waiting", "done", "failed")}


def test_an_entry_becomes_a_document_wherever_that_lies(shards: Shards) -> None:
    stream, before = "ingest:{anything}", totals(shards)
    for n in range(24):
        add(shards.client, stream, shards.corpus, f"d{n}", f"Ferry number {n} sails to Skerrow.", title=f"Ferry {n}")
    wait_until(lambda: all_are_ingested(shards, 24), "all are ingested")
    assert len({shards.tag_of(f"d{n}")[0] for n in range(24)}) == len(shards.nodes()), "they lie on all shards"
    assert shards.passages("d7")[0]["text"] == "Ferry number 7 sails to Skerrow."
    assert shards.passages("d7")[0]["title"] == "Ferry 7"
    wait_until(lambda: shards.client.xlen(stream) == 0, "what is done is taken off the stream")
    after = {"waiting": 0, "done": before["done"] + 24, "failed": before["failed"]}
    wait_until(lambda: totals(shards) == after, "the shards tell of all")


def test_a_later_entry_of_the_same_document_wins(shards: Shards) -> None:
    for text in ("The pier is long.", "The pier is closed."):
        add(shards.client, "ingest:{pier}", shards.corpus, "pier", text)
    wait_until(
        lambda: [p["text"] for p in shards.passages("pier")] == ["The pier is closed."], "the later one is there"
    )
    assert shards.belongings("pier") == 2


@pytest.fixture
def failing(shards: Shards) -> Iterator[str]:
    """A stream whose entries can't become documents; both streams are gone afterwards."""
    yield "ingest:{wrong}"
    shards.client.delete("ingest:{wrong}")
    shards.client.delete("ingest-failed:{wrong}")


def test_what_can_never_be_a_document_is_put_aside_once_with_its_reason(shards: Shards, failing: str) -> None:
    client = shards.client
    client.xadd(failing, {"id": "nameless", "text": "t"})
    client.xadd(failing, {"corpus": "Not A Name", "id": "a", "text": "t"})
    client.xadd(failing, {"corpus": shards.corpus, "id": "a", "text": "t", "colour": "red"})
    for n in range(9):  # on every shard
        client.xadd(failing, {"corpus": shards.corpus, "id": f"blank-{n}", "text": "   "})
    add(client, failing, shards.corpus, "good", "The lighthouse was built in 1893.")
    wait_until(lambda: is_ingested(shards, "good"), "what follows is ingested")
    aside = [entry for _, entry in client.xrange("ingest-failed:{wrong}")]
    reasons = [entry[b"reason"].decode() for entry in aside]
    assert len(aside) == 12
    assert reasons[0].startswith("bad_data: the entry has no field 'corpus'")
    assert reasons[1].startswith("bad_corpus_name: ")
    assert "colour" in reasons[2]
    assert all(reason.startswith("bad_document: ") for reason in reasons[2:])
    assert (aside[0][b"id"], aside[0][b"stream"]) == (b"nameless", failing.encode())
    wait_until(lambda: totals(shards)["failed"] == 12, "the shard tells of them")


def test_the_table_of_nodes_shows_how_far_the_streams_are(
    cluster: LocalCluster, shards: Shards, program: Callable[..., Output]
) -> None:
    add(shards.client, "ingest:{shown}", shards.corpus, "shown", "Harbour dues are paid in advance.")
    wait_until(lambda: is_ingested(shards, "shown"), "it is ingested")
    wait_until(lambda: totals(shards)["waiting"] == 0, "it is taken off")
    rows = program("status", "--json", "--redis", cluster.seed()).json
    assert sum(int(row["streams"].split(" done")[0].split()[-1]) for row in rows if "done" in row["streams"]) >= 1


def test_a_stream_without_a_tag_has_its_failures_in_its_own_slot() -> None:
    assert keys.failed_entries("ingest:{b0017}") == "ingest-failed:{b0017}"
    assert keys.failed_entries("ingest:news") == "ingest-failed:{ingest:news}"


@pytest.fixture
def alone(start_node: Callable[..., Node]) -> Node:
    """A node outside cluster mode that keeps every write that it acknowledged."""
    node = start_node(extra=DURABLE)
    with node.client() as client:
        assert send(client, "RG.PYEXECUTE", CODE, "ID", SESSION, "UPGRADE") == b"OK"
    return node


def kill_the_worker(node: Node) -> None:
    with node.client() as client:
        kill_worker(client)


def kill_the_node(node: Node) -> None:
    node.kill()
    node.start()


@pytest.mark.parametrize("kill", [kill_the_worker, kill_the_node])
def test_no_document_is_lost_and_none_doubled_when_it_dies_in_the_middle(
    alone: Node, kill: Callable[[Node], None]
) -> None:
    count, bad = 120, range(0, 120, 10)
    with alone.client() as client:
        for n in range(count):
            text = "  " if n in bad else f"Ferry number {n} sails to Skerrow and back again."
            add(client, f"ingest:{{{n % 3}}}", "c", f"d{n}", text)
        wait_until(
            lambda: any(client.hexists(keys.doc("c", f"d{n}"), "digest") for n in range(20, 60)), "some are done"
        )
    kill(alone)
    with alone.client() as client:
        good = [n for n in range(count) if n not in bad]
        wait_until(lambda: all(client.xlen(f"ingest:{{{n}}}") == 0 for n in range(3)), "the streams are empty", 60)
        assert all(client.hmget(keys.doc("c", f"d{n}"), "passages") == [b"1"] for n in good)
        assert sum(1 for _ in client.scan_iter(match="passage:c:*", count=1_000)) == len(good)
        assert sum(1 for _ in client.scan_iter(match="tokens:c:*", count=1_000)) == len(good)
        aside = [entry for n in range(3) for _, entry in client.xrange(f"ingest-failed:{{{n}}}")]
        assert sorted(entry[b"id"].decode() for entry in aside) == sorted(f"d{n}" for n in bad)
        wait_until(lambda: json.loads(send(client, "RG.TRIGGER", "Streams")[0])["failed"] == len(bad), "it tells")
