"""A large model that was pushed, on shards that come later and on those whose slots move.

64 MB in `make test`, 1.3 GB with FAULTS=all: more than a frame between worker and Redis takes, and than DUMP can carry.
"""

import asyncio
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from redis import Redis, ResponseError

from shardqa import ai, keys, topology
from shardqa.cluster.local import LocalCluster
from shardqa.description import ShardDescription
from tests.nodes import Node, prepare, running_cluster, running_node, settings_of, wait_until

pytest.importorskip("onnx", reason="the model of this test is made with onnx")
from tests.onnx_models import write_table

LARGE = os.environ.get("FAULTS") == "all"
ROWS = 317_000 if LARGE else 16_000  # of 4 KiB each
SECONDS = 600.0 if LARGE else 60.0
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
    """Of the shard's copy."""
    return keys.model("table", ShardDescription.parse(client.execute_command("RG.TRIGGER", "Shard")).tag)


def runs(client: Any) -> bool:
    """Whether it is there, under the shard's tag, and gives the first, the middle and the last row."""
    rows = np.array([0, ROWS // 2, ROWS - 1])
    try:
        (found,) = ai.Client(client).run(own_key(client), [rows])
    except ai.AiFault:
        return False
    return bool((found == rows.astype(np.float32)[:, None]).all())


def moved(slot: int, giver: Any, taker: Any) -> None:
    """As redis-cli --cluster reshard does it."""
    given, taken = (topology.myself(topology.read(client)) for client in (giver, taker))
    taker.execute_command("CLUSTER", "SETSLOT", slot, "IMPORTING", given.id)
    giver.execute_command("CLUSTER", "SETSLOT", slot, "MIGRATING", taken.id)
    wait_until(lambda: emptied(slot, giver, taken), "all keys have left", SECONDS)
    for client in (giver, taker):  # this way round: one that hears of the loss of its last slot becomes a replica
        client.execute_command("CLUSTER", "SETSLOT", slot, "NODE", taken.id)


def emptied(slot: int, giver: Any, taken: topology.Node) -> bool:
    """Whether it is. What is too large for MIGRATE fails until its shard has made way."""
    names = giver.execute_command("CLUSTER", "GETKEYSINSLOT", slot, 10)
    for name in names:
        try:
            giver.execute_command("MIGRATE", taken.host, taken.port, name, 0, 60_000)
        except ResponseError:
            time.sleep(5)  # a try takes Redis seconds, in which no shard can do anything
    return not names


def anonymous(client: Any) -> int:
    """Bytes of the worker's memory that are no pages of a file."""
    pid = client.info("shardqa")["shardqa_worker_pid"]
    status = Path(f"/proc/{pid}/status").read_text()
    return next(int(line.split()[1]) << 10 for line in status.splitlines() if line.startswith("RssAnon"))


def knows(client: Any, slot: int, port: int) -> bool:
    return any(node.owns(slot) and node.port == port for node in topology.read(client))


def joined(cluster: LocalCluster, node: Node) -> None:
    first = clients(cluster)[0]
    first.execute_command("CLUSTER", "MEET", "127.0.0.1", node.port, node.config.bus_port)
    everybody = [*clients(cluster), node.client()]
    wait_until(lambda: all(len(topology.read(client)) == 3 for client in everybody), "all have met")


def test_a_shard_that_joins_gets_it_and_no_worker_holds_it(cluster: LocalCluster, tmp_path: Path) -> None:
    """As one on another host, with a folder of its own."""
    arguments = ("MODELS", str(tmp_path / "models"), *ARGUMENTS)
    with running_node(tmp_path / "node", cluster=True, module_arguments=arguments, extra=PATIENT) as node:
        late = node.client(socket_timeout=SECONDS)
        joined(cluster, node)
        old = clients(cluster)
        before = [anonymous(client) for client in old]
        most = list(before)

        def came() -> bool:
            most[:] = [max(pair) for pair in zip(most, map(anonymous, old), strict=True)]
            return runs(late)

        giver = next(client for client in old if topology.myself(topology.read(client)).owns(HIGH))
        moved(HIGH, giver, late)
        wait_until(lambda: knows(old[0], HIGH, node.port), "all know whose the slot is")
        prepare(cluster)
        wait_until(came, "the new shard runs the model", SECONDS)
        assert late.info("shardqa")["shardqa_model_bytes_in_files"] > ROWS * 4096
        assert all(high - low < ROWS * 1024 for low, high in zip(before, most, strict=True))
        moved(HIGH, late, giver)


def test_it_is_there_again_when_the_slot_it_lay_in_was_moved(cluster: LocalCluster) -> None:
    giver, taker = sorted(clients(cluster), key=lambda client: not topology.myself(topology.read(client)).owns(0))
    before = own_key(giver)
    assert runs(giver)
    moved(0, giver, taker)
    wait_until(lambda: own_key(giver) != before, "the shard has another tag", SECONDS)
    for client in (giver, taker):
        wait_until(lambda client=client: runs(client), "the shard runs the model", SECONDS)  # type: ignore[misc]
        alone = [own_key(client).encode()]
        wait_until(lambda client=client, alone=alone: client.keys("model:table:*") == alone, "its own alone", SECONDS)  # type: ignore[misc]
    assert giver.info("shardqa")["shardqa_model_bytes_in_files"] > ROWS * 4096
