"""A large model that was pushed, on shards that come later and on those whose slots move."""

import asyncio
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from redis import Redis, ResponseError

from shardqa import keys, topology
from shardqa.cluster.local import LocalCluster
from shardqa.description import ShardDescription
from tests.faults.large import ROWS, SECONDS, anonymous, runs
from tests.nodes import Node, prepare, running_cluster, running_node, settings_of, wait_until
from tests.slots import begin_move, migrate

pytest.importorskip("onnx", reason="the model of this test is made with onnx")
from tests.onnx_models import write_table

ARGUMENTS = ("MODEL_FILE_BYTES", "1000000", "HEARTBEAT", "30000")
PATIENT = (("cluster-node-timeout", "60000"),)  # a node that writes 1.3 GB answers nobody meanwhile
HIGH = topology.SLOTS - 1  # a slot that is no shard's lowest, so no model lies in it
pytestmark = pytest.mark.timeout(1800)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    """Two shards, which have the model."""
    folder = tmp_path_factory.mktemp("copies")
    write_table(folder / "table.onnx", ROWS)
    fill(folder / "table.onnx")
    options = {"share_models": True, "module_arguments": ARGUMENTS, "extra": PATIENT}
    with running_cluster(folder / "data", shards=2, **options) as found:
        prepare(found)
        asyncio.run(push(found, folder / "table.onnx"))
        yield found


def fill(path: Path) -> None:
    """Between its first and its middle row, so that it can't be packed into a small dump."""
    random = np.random.default_rng(1)
    with path.open("r+b") as file:
        start = path.stat().st_size - ROWS * 4096
        for at in range(1, ROWS // 2, 256):
            file.seek(start + at * 4096)
            file.write(random.bytes(min(256, ROWS // 2 - at) * 4096))


async def push(cluster: LocalCluster, path: Path) -> None:
    from shardqa.engine import Engine
    from shardqa.loader.models import ShardModel
    from shardqa.loader.push import push_file

    engine = await Engine.connect(settings_of(cluster, timeout=SECONDS))
    try:
        assert len((await push_file(engine, ShardModel.of_file("table", path))).stored) == 2
    finally:
        await engine.close()


def clients(cluster: LocalCluster) -> list[Any]:
    return [Redis(host=host, port=port, socket_timeout=SECONDS) for host, port in cluster.addresses]


def own_key(client: Any) -> str:
    """The key of the shard's copy."""
    return keys.model("table", ShardDescription.parse(client.execute_command("RG.TRIGGER", "Shard")).tag)


def has_copy(client: Any) -> bool:
    return runs(client, own_key(client))


def move(slot: int, giver: Any, taker: Any) -> None:
    """Moves a slot as redis-cli --cluster reshard does it."""
    begin_move(slot, giver, taker)
    wait_until(lambda: is_emptied(slot, giver, taker), "all keys have left", SECONDS)
    id = topology.myself(topology.read(taker)).id
    for client in (giver, taker):  # this way round: one that hears of the loss of its last slot becomes a replica
        client.execute_command("CLUSTER", "SETSLOT", slot, "NODE", id)


def is_emptied(slot: int, giver: Any, taker: Any) -> bool:
    """Whether it is; what is too large for MIGRATE fails until its shard has made way."""
    names = giver.execute_command("CLUSTER", "GETKEYSINSLOT", slot, 10)
    for name in names:
        try:
            migrate(giver, taker, [name])
        except ResponseError:
            time.sleep(5)  # a try takes Redis seconds, in which no shard can do anything
    return not names


def memory(client: Any) -> int:
    """Bytes of its worker that are no pages of a file."""
    return anonymous(int(client.info("shardqa")["shardqa_worker_pid"]))


def knows(client: Any, slot: int, port: int) -> bool:
    return any(node.owns(slot) and node.port == port for node in topology.read(client))


def joined(cluster: LocalCluster, node: Node) -> None:
    first = clients(cluster)[0]
    first.execute_command("CLUSTER", "MEET", "127.0.0.1", node.port, node.config.bus_port)
    everybody = [*clients(cluster), node.client()]
    wait_until(lambda: all(len(topology.read(client)) == 3 for client in everybody), "all have met")


def test_a_shard_that_joins_gets_it_and_no_worker_holds_it(cluster: LocalCluster, tmp_path: Path) -> None:
    """The new shard might be on another host, with a folder of its own."""
    arguments = ("MODELS", str(tmp_path / "models"), *ARGUMENTS)
    with running_node(tmp_path / "node", cluster=True, module_arguments=arguments, extra=PATIENT) as node:
        late = node.client(socket_timeout=SECONDS)
        joined(cluster, node)
        old = clients(cluster)
        before = list(map(memory, old))
        most = list(before)

        def has_come() -> bool:
            most[:] = [max(pair) for pair in zip(most, map(memory, old), strict=True)]
            return has_copy(late)

        giver = next(client for client in old if topology.myself(topology.read(client)).owns(HIGH))
        move(HIGH, giver, late)
        wait_until(lambda: knows(old[0], HIGH, node.port), "all know whose the slot is")
        prepare(cluster)
        wait_until(has_come, "the new shard runs the model", SECONDS)
        assert late.info("shardqa")["shardqa_model_bytes_in_files"] > ROWS * 4096
        assert all(high - low < ROWS * 1024 for low, high in zip(before, most, strict=True))
        move(HIGH, late, giver)


def test_it_is_there_again_when_the_slot_it_lay_in_was_moved(cluster: LocalCluster) -> None:
    giver, taker = sorted(clients(cluster), key=lambda client: not topology.myself(topology.read(client)).owns(0))
    before = own_key(giver)
    assert has_copy(giver)
    move(0, giver, taker)
    wait_until(lambda: own_key(giver) != before, "the shard has another tag", SECONDS)
    for client in (giver, taker):
        wait_until(partial(has_copy, client), "the shard runs the model", SECONDS)
        wait_until(partial(has_own_copy_alone, client), "it has its own alone", SECONDS)
    assert giver.info("shardqa")["shardqa_model_bytes_in_files"] > ROWS * 4096


def has_own_copy_alone(client: Any) -> bool:
    return bool(client.keys("model:table:*") == [own_key(client).encode()])
