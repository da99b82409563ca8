"""A large model from the file to every restart: who needs how much memory for it."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from shardqa import ai
from tests.faults.large import LARGE, ROWS, SECONDS, SIZE, anonymous, runs
from tests.nodes import Node, running_node, wait_until

pytest.importorskip("onnx", reason="the model of this test is made with onnx")
from tests.onnx_models import write_table

pytestmark = pytest.mark.timeout(1800)

# Prints by how much the process' highest memory grew, in bytes.
CLIENT = """
import asyncio, resource, sys
from pathlib import Path
from shardqa import ai

def highest():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10

url, way, path, seconds = sys.argv[1], sys.argv[2], Path(sys.argv[3]), float(sys.argv[4])

async def in_a_loop():
    async with await ai.AsyncClient.connect(url, socket_timeout=seconds) as client:
        before = highest()
        await client.model_store("m", "ONNX", path)
        return highest() - before

def blocking():
    with ai.Client.connect(url, socket_timeout=seconds) as client:
        before = highest()
        client.model_store("m", "ONNX", path)
        return highest() - before

print(asyncio.run(in_a_loop()) if way == "asyncio" else blocking())
"""


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("table") / "table.onnx"
    write_table(path, ROWS)
    return path


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    folder = tmp_path_factory.mktemp("large")
    arguments = ("MODELS", str(folder / "models"), "MODEL_FILE_BYTES", "1000000", "HEARTBEAT", "30000")
    with running_node(folder / "node", module_arguments=arguments) as node:
        wait_until(lambda: is_ready(node), "the worker is ready")
        yield node


def is_ready(node: Node) -> bool:
    return bool(node.client().info("shardqa")["shardqa_worker_state"] == "ready")


def bytes_in_files(node: Node) -> int:
    return int(node.client().info("shardqa")["shardqa_model_bytes_in_files"])


def check_memory(node: Node) -> None:
    """Allocators give pages back some seconds after they are free."""
    worker = int(node.client().info("shardqa")["shardqa_worker_pid"])
    wait_until(lambda: anonymous(worker) < 60e6 + SIZE / 4, "the worker has let go of it")
    wait_until(lambda: anonymous(node.pid()) < 30e6 + SIZE / 4, "Redis has let go of it")


def model_runs(node: Node) -> bool:
    return runs(node.client(socket_timeout=SECONDS), "m")


@pytest.mark.parametrize("way", ["asyncio", "blocking"])
def test_a_client_stores_a_file_without_holding_it(node: Node, model: Path, way: str) -> None:
    url = f"redis://127.0.0.1:{node.port}"
    command = [sys.executable, "-c", CLIENT, url, way, str(model), str(SECONDS)]
    grown = int(subprocess.run(command, capture_output=True, text=True, check=True, timeout=SECONDS).stdout)
    assert grown < SIZE / 4
    assert model_runs(node)


def test_redis_and_worker_hold_it_in_one_file(node: Node, model: Path) -> None:
    with ai.Client(node.client(socket_timeout=SECONDS)) as client:
        client.model_store("m", "ONNX", model)
    assert model_runs(node)
    wait_until(lambda: bytes_in_files(node) == model.stat().st_size, "the file of the model before is gone")
    check_memory(node)
    assert node.client().memory_usage("m") < 10_000


@pytest.mark.parametrize("way", ["append only file", "rdb"] if LARGE else ["rdb"])
def test_it_comes_back_from_a_restart(node: Node, model: Path, way: str) -> None:
    """Neither Redis nor the worker holds it then. The base of a rewritten append only file is RDB."""
    with ai.Client(node.client(socket_timeout=SECONDS)) as client:
        client.model_store("m", "ONNX", model)
    if way == "rdb":
        patient = node.client(socket_timeout=SECONDS)
        wait_until(patient.bgrewriteaof, "no rewrite of Redis' own is under way", SECONDS)
        wait_until(lambda: not patient.info("persistence")["aof_rewrite_in_progress"], "it is rewritten", SECONDS)
    node.restart()
    wait_until(lambda: is_ready(node), "the worker is ready", SECONDS)
    wait_until(lambda: model_runs(node), "the model is loaded again", SECONDS)
    check_memory(node)


@pytest.mark.skipif(not LARGE, reason="sends more than 1 GiB; 'make faults' runs it")
def test_one_that_no_frame_carries_is_refused_where_there_is_no_folder(model: Path, tmp_path: Path) -> None:
    with running_node(tmp_path / "bare") as bare:
        wait_until(lambda: is_ready(bare), "the worker is ready")
        with ai.Client(bare.client(socket_timeout=SECONDS)) as client:
            with pytest.raises(ai.ModelRefused, match="larger than 1 GiB, and no file could be made"):
                client.model_store("m", "ONNX", model)
            assert client.model_scan() == []
