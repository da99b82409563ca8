"""Registrations, hooks in their order and removals outlive a worker, a reload, a node and a master."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest
from redis import Redis, ResponseError
from redis.exceptions import TryAgainError

from tests.compat.scripts import ANSWERS, echo, registered_ids, registrations, send
from tests.nodes import Node, running_node, wait_until
from tests.workers import kill_worker, ready_worker

# A killed node keeps all that it acknowledged; with everysec it may lose two seconds of that (docs/operating.md).
EXTRA = (("appendfsync", "always"), ("enable-debug-command", "local"))
HOOK = "GB('CommandReader').map(lambda r: '{n}' + str(call_next(*r[1:]))).register(hook='hset', keyprefix='h:')"
SESSIONS = {
    "answers": ANSWERS.replace("{prefix}", "a:"),
    "pair": echo("kept") + "\n" + echo("removed"),
    "hook-2": HOOK.format(n=2),
    "hook-1": HOOK.format(n=1),
}

Pair = tuple[Node, Node]


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    """A master with the sessions, and its replica."""
    folder = tmp_path_factory.mktemp("restart")
    with (
        running_node(folder / "master", extra=EXTRA) as master,
        running_node(folder / "replica", extra=EXTRA, replica_of=master.port) as replica,
    ):
        with master.client(decode_responses=True) as client:
            for id, code in SESSIONS.items():
                send(client, "RG.PYEXECUTE", code, "ID", id)
            (removed,) = (entry["id"] for entry in registrations(client) if entry["args"][1] == "removed")
            send(client, "RG.UNREGISTER", removed)
        yield master, replica


@contextmanager
def new_worker(pair: Pair) -> Iterator[Node]:
    with pair[0].client() as client:
        pid = kill_worker(client)
        assert client.set("while", "away"), "Redis went on"
        ready_worker(client, but_not=[pid])
    yield pair[0]


@contextmanager
def new_node(pair: Pair) -> Iterator[Node]:
    pair[0].kill()
    pair[0].restart()
    yield pair[0]


@contextmanager
def new_keyspace(pair: Pair) -> Iterator[Node]:
    with pair[0].client() as client:
        send(client, "DEBUG", "RELOAD")
    yield pair[0]


@contextmanager
def new_master(pair: Pair) -> Iterator[Node]:
    """The replica takes over, and follows again in the end."""
    master, replica = pair
    with replica.client(decode_responses=True) as client:
        wait_until(lambda: client.info("replication")["master_link_status"] == "up", "the replica follows")
        wait_until(lambda: len(registered_ids(client)) == 4, "its worker has replayed the sessions")
        assert client.get("a:of-a-replica") is None, "a replica computes nothing"
        master.kill()
        client.replicaof("NO", "ONE")
        yield replica
        master.start()
        client.replicaof("127.0.0.1", master.port)


@pytest.mark.parametrize("kind", [new_worker, new_keyspace, new_node, new_master])
def test_what_is_registered_is_there_after(pair: Pair, kind: Callable[[Pair], AbstractContextManager[Node]]) -> None:
    name = kind.__name__
    with pair[0].client(decode_responses=True) as client:
        ids = sorted(registered_ids(client))
        client.set(f"plain-{name}", "value")
        assert client.wait(1, 20_000) == 1
    with kind(pair) as node, node.client(decode_responses=True) as client:
        wait_until(lambda: triggers(client, "kept"), "its function answers")
        assert client.get(f"a:{name}") == f"answer of a:{name}"
        assert send(client, "HSET", f"h:{name}", "f", "v") == "121"
        assert client.get(f"plain-{name}") == "value"
        assert sorted(registered_ids(client)) == ids
        with pytest.raises(ResponseError, match="subcommand not found"):
            send(client, "RG.TRIGGER", "removed")


def triggers(client: Redis, trigger: str) -> bool:
    """False while the worker is away."""
    try:
        return bool(send(client, "RG.TRIGGER", trigger) == ["yes"])
    except TryAgainError:
        return False


def test_a_registration_can_be_removed_while_its_session_is_run_again(tmp_path: Path) -> None:
    with running_node(tmp_path, extra=EXTRA) as node, node.client(decode_responses=True) as client:
        assert send(client, "RG.PYEXECUTE", f"import time\ntime.sleep(0.5)\n{echo('slow')}") == "OK"
        (id,) = registered_ids(client)
        send(client, "DEBUG", "RELOAD")
        assert send(client, "RG.UNREGISTER", id) == "OK"
        assert registered_ids(client) == []
