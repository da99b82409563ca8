"""Several addresses of one cluster: it is found while any of them answers."""

from collections.abc import Callable

import pytest

from shardqa.cluster.local import LocalCluster
from shardqa.config import Settings
from shardqa.engine import Engine
from tests.conftest import Output
from tests.nodes import free_port


@pytest.fixture
def addresses(cluster: LocalCluster) -> str:
    """Nobody is at the first."""
    return f"127.0.0.1:{free_port(1)}, {cluster.seed()}"


async def test_the_engine_finds_the_cluster_past_a_node_that_is_gone(addresses: str) -> None:
    async with await Engine.connect(Settings(redis=addresses)) as engine:
        assert len(await engine.cluster.shards()) == 3


async def test_the_engine_goes_back_to_its_addresses_where_no_node_it_learnt_answers(
    addresses: str, cluster: LocalCluster
) -> None:
    async with await Engine.connect(Settings(redis=addresses)) as engine:
        manager = engine.shards._cluster.nodes_manager
        port = free_port(1)
        for node in list(manager.startup_nodes.values()):
            node.port, node.connection_kwargs["port"] = port, port
            await node.disconnect()
        await engine.shards._look()
        assert {node.name for node in engine.shards.nodes()} == {f"127.0.0.1:{port}" for _, port in cluster.addresses}


@pytest.mark.parametrize("command", ["status", "doctor"])
def test_the_command_line_finds_it_too(addresses: str, command: str, program: Callable[..., Output]) -> None:
    places = [row.get("node") or row.get("place") for row in program(command, "--redis", addresses, "--json").json]
    assert addresses.rpartition(" ")[2] in places
