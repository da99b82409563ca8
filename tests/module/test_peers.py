"""Connections that the module makes for its worker: to nodes of the cluster, and to nothing else."""

import json
from collections.abc import Iterator

import pytest

from .servers import Server, until  # noqa: TID251 (this package is tests/module)

NOBODY = "f" * 40


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Server, Server]]:
    """Two nodes that know each other."""
    folder = tmp_path_factory.mktemp("peers")
    nodes = [Server(folder / name, cluster=True).start() for name in ("one", "other")]
    first, other = nodes
    first.client().execute_command("CLUSTER", "MEET", "127.0.0.1", other.port, other.config.bus_port)
    # A cluster without a slot goes down after two seconds, and who waits for a worker there is told so.
    first.client().execute_command("CLUSTER", "ADDSLOTSRANGE", 0, 16383)
    until(lambda: all(knows(node, id_of(other)) and knows(node, id_of(first)) and is_up(node) for node in nodes))
    yield first, other
    for node in nodes:
        node.stop()


def id_of(node: Server) -> str:
    return str(node.client(decode_responses=True).execute_command("CLUSTER", "MYID"))


def is_up(node: Server) -> bool:
    return "cluster_state:ok" in node.client(decode_responses=True).execute_command("CLUSTER", "INFO")


def knows(node: Server, id: str) -> bool:
    listed = node.client(decode_responses=True).execute_command("CLUSTER", "NODES").splitlines()
    return any(line.startswith(id) and "handshake" not in line for line in listed)


def connected(node: Server, *ids: str) -> list[str]:
    """For each id, in the order asked: what the peer answered to PING on the connection, or the name of the error."""
    return [str(found) for found in json.loads(node.order("peers", *ids))]


def test_a_node_of_the_cluster_is_connected(two: tuple[Server, Server]) -> None:
    first, other = two
    assert connected(first, id_of(other)) == ["+PONG"]


def test_many_at_once_are_each_connected(two: tuple[Server, Server]) -> None:
    first, other = two
    assert connected(first, *[id_of(other)] * 60) == ["+PONG"] * 60


def test_what_the_cluster_does_not_know_is_not_connected(two: tuple[Server, Server]) -> None:
    first, _ = two
    assert connected(first, NOBODY, "127.0.0.1", "") == ["ENOENT"] * 3


def test_a_node_that_is_down_is_an_error(two: tuple[Server, Server]) -> None:
    first, other = two
    id = id_of(other)
    other.stop()
    try:
        assert connected(first, id) == ["ECONNREFUSED"]
    finally:
        other.start()


def test_what_is_no_request_is_passed_over(two: tuple[Server, Server]) -> None:
    first, other = two
    first.order("peer_noise")
    assert connected(first, id_of(other)) == ["+PONG"]
    assert first.info()["worker_restarts"] == 0


def test_a_node_outside_a_cluster_has_no_peers(server: Server) -> None:
    assert connected(server, NOBODY) == ["ENOENT"]


def test_a_worker_that_closes_its_end_or_dies_leaves_nothing_open(two: tuple[Server, Server]) -> None:
    first, other = two
    pid = first.pid()
    first.order("peer_close")
    first.kill_worker()
    first.restarted(1)
    assert connected(first, id_of(other)) == ["+PONG"]
    assert first.pid() == pid
