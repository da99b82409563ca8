"""Several addresses of one cluster: it is found while any of them answers."""

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from shardqa.cli import app
from shardqa.cluster import redis_server
from shardqa.cluster.local import LocalCluster
from shardqa.config import Settings
from shardqa.engine import Engine
from tests.nodes import free_port, running_cluster


@pytest.fixture
def addresses(cluster: LocalCluster) -> str:
    """Nobody is at the first."""
    return f"127.0.0.1:{free_port(1)}, {cluster.seed()}"


async def test_the_engine_finds_the_cluster_past_a_node_that_is_gone(addresses: str) -> None:
    engine = await Engine.connect(Settings(redis=addresses))
    try:
        assert len(await engine.cluster.shards()) == 3
    finally:
        await engine.close()


async def test_the_engine_goes_back_to_its_addresses_where_no_node_it_learnt_answers(
    addresses: str, cluster: LocalCluster
) -> None:
    engine = await Engine.connect(Settings(redis=addresses))
    try:
        manager = engine.shards._cluster.nodes_manager
        gone = free_port(1)
        for node in list(manager.startup_nodes.values()):
            node.port, node.connection_kwargs["port"] = gone, gone
            await node.disconnect()
        await engine.shards._look()
        assert {node.name for node in engine.shards.nodes()} == {f"127.0.0.1:{port}" for _, port in cluster.addresses}
    finally:
        await engine.close()


@pytest.mark.parametrize("command", ["status", "doctor"])
def test_the_command_line_finds_it_too(addresses: str, command: str) -> None:
    result = CliRunner().invoke(app, [command, "--redis", addresses, "--json"])
    places = [row.get("node") or row.get("place") for row in json.loads(result.stdout)]
    assert addresses.rpartition(" ")[2] in places


@pytest.fixture
def two(tmp_path: Path) -> Iterator[LocalCluster]:
    """Shards without functions."""
    with running_cluster(tmp_path / "two", shards=2) as cluster:
        yield cluster


async def test_the_engine_connects_while_the_first_master_hangs_or_is_down(two: LocalCluster) -> None:
    """Nothing replaces it, so it stays among the masters."""
    first, second = two.state.nodes
    assert first.process is not None
    for number in (signal.SIGSTOP, signal.SIGKILL):
        os.kill(first.process.pid, number)
        engine = await Engine.connect(Settings(redis=f"127.0.0.1:{second.port}"))
        assert len(engine.shards.nodes()) == 2
        await engine.close()
    redis_server.reap()
