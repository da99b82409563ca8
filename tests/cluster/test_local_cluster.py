"""Local clusters: shapes, restarts, moved ports, a killed node; real nodes in temporary folders."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from shardqa import topology
from shardqa.cluster import local, node, ports, redis_server, state, tags
from shardqa.cluster.local import ClusterOptions, LocalCluster
from shardqa.errors import SetupError
from tests.nodes import free_port, kill_node

Start = Callable[..., LocalCluster]
KEY = "{b0001}survivor"


def owner_port(cluster: LocalCluster) -> int:
    with node.connected(cluster.state.port) as client:
        owner = tags.owner(topology.read(client), KEY)
    assert owner is not None
    return owner.port


def write(cluster: LocalCluster) -> None:
    """A key on the master of its slot, on disk when this returns."""
    with node.connected(owner_port(cluster)) as client:
        client.config_set("appendfsync", "always")
        client.set(KEY, "here")


def read(cluster: LocalCluster) -> object:
    with node.connected(owner_port(cluster)) as client:
        return client.get(KEY)


def running(cluster: LocalCluster) -> list[int]:
    found = local.inspect(cluster.data)
    assert found is not None
    return [n.port for n in found.nodes if n.running()]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return tmp_path / "data"


@pytest.fixture
def start(data: Path) -> Iterator[Start]:
    """`start(shards=1)`; stopped at the end whatever happens."""

    def start_(**options: object) -> LocalCluster:
        options = {"port": ports.random_block(4, 4), "bus_offset": 4, **options}
        return local.start(ClusterOptions(data=data, **options))  # type: ignore[arg-type]

    yield start_
    local.stop(data)


def test_replicas_follow_their_masters(start: Start) -> None:
    cluster = start(shards=2, replicas=1)
    for _, port in cluster.addresses:
        with node.connected(port) as client:
            nodes = topology.read(client)
        assert [n.role for n in nodes] == ["master", "replica", "master", "replica"]
        assert nodes[1].master == nodes[0].id
        assert nodes[3].master == nodes[2].id


def test_a_cluster_that_is_stopped_killed_or_moved_keeps_its_data(start: Start, data: Path) -> None:
    first = start(shards=2)
    write(first)
    assert local.start(ClusterOptions(data=data)).started == (), "what runs already is not started"
    assert len(local.stop(data)) == 2
    assert running(first) == []
    second = local.start(ClusterOptions(data=data))
    assert second.addresses == first.addresses
    assert read(second) == b"here"
    victim = [port for _, port in second.addresses].index(owner_port(second))
    kill_node(second, victim)
    third = local.start(ClusterOptions(data=data))
    assert [n.port for n in third.started] == [second.addresses[victim][1]]
    assert read(third) == b"here"
    local.stop(data)
    fourth = start()
    assert fourth.state.port != first.state.port
    assert read(fourth) == b"here"


def test_one_master_alone_is_a_cluster_and_another_number_of_shards_is_refused(start: Start, data: Path) -> None:
    with node.connected(start(shards=1).state.port) as client:
        assert [n.slot_count() for n in topology.read(client)] == [topology.SLOTS]
    with pytest.raises(SetupError, match=r"has 1 shards, asked for 3.*--data"):
        local.start(ClusterOptions(data=data, shards=3))


@pytest.mark.parametrize("seen", [True, False], ids=["that is seen to run", "that ends before it is looked at"])
def test_a_node_that_can_not_start_is_told_with_the_end_of_its_log(
    monkeypatch: pytest.MonkeyPatch, start: Start, data: Path, seen: bool
) -> None:
    if not seen:
        monkeypatch.setattr(redis_server, "identify", lambda pid: None)
    with pytest.raises(SetupError, match=r"(?s)ended.*no-such-option"):
        start(shards=1, extra=(("no-such-option", "1"),))
    found = local.inspect(data)
    assert found is not None
    assert not any(n.running() for n in found.nodes)


def test_a_folder_with_blanks_and_quotes_in_its_name_works(tmp_path: Path) -> None:
    data = tmp_path / 'my "data" für\'s Büro'
    port = free_port(1)
    try:
        cluster = local.start(ClusterOptions(data=data, shards=1, port=port, bus_offset=1))
        write(cluster)
        assert read(cluster) == b"here"
    finally:
        local.stop(data)


def test_data_of_another_version_is_left_as_it_was(data: Path) -> None:
    data.mkdir()
    path = data / state.STATE
    path.write_text(json.dumps({"layout": 0, "old": True}))
    with pytest.raises(SetupError, match="layout 0"):
        local.start(ClusterOptions(data=data))
    assert json.loads(path.read_text()) == {"layout": 0, "old": True}
