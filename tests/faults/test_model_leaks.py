"""Models that are stored, run and deleted again and again: neither Redis nor the worker grows, and no file is left.

30 of each kind in `make test`, 1,000 with FAULTS=all.
"""

import os
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

import pytest

from tests.faults.large import anonymous
from tests.nodes import running_node, wait_until

onnx = pytest.importorskip("onnx", reason="the model of this test is made with onnx")
import numpy as np  # noqa: E402
from onnx import TensorProto, helper, numpy_helper  # noqa: E402

TIMES = 1000 if os.environ.get("FAULTS") == "all" else 30
WIDTH = 512  # 1 MiB of weights
MB = 1 << 20
pytestmark = pytest.mark.timeout(900)


def weighted() -> bytes:
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", WIDTH]) for name in ("x", "y"))
    weights = numpy_helper.from_array(np.ones((WIDTH, WIDTH), np.float32), "w")
    graph = helper.make_graph([helper.make_node("MatMul", ["x", "w"], ["y"])], "g", [x], [y], initializer=[weights])
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return bytes(made.SerializeToString())


def growth(samples: Sequence[int]) -> float:
    """The growth of the last third over the middle one: the first is warming up."""
    third = len(samples) // 3
    return median(samples[-third:]) - median(samples[third : 2 * third])


@pytest.mark.parametrize("place", ["memory", "files"])
def test_models_that_come_and_go_leave_nothing(tmp_path: Path, place: str) -> None:
    models = tmp_path / "models"
    arguments = ("MODELS", str(models), "MODEL_FILE_BYTES", "1000") if place == "files" else ()
    blob, row = weighted(), np.ones(WIDTH, np.float32).tobytes()
    redis, worker = list[int](), list[int]()
    with running_node(tmp_path / "node", module_arguments=arguments) as node:
        client: Any = node.client(socket_timeout=120)
        wait_until(lambda: client.info("shardqa")["shardqa_worker_state"] == "ready", "the worker is ready")
        client.execute_command("AI.TENSORSET", "x", "FLOAT", 1, WIDTH, "BLOB", row)
        pid = int(client.info("shardqa")["shardqa_worker_pid"])
        for number in range(TIMES):
            client.execute_command("AI.MODELSTORE", "m", "ONNX", "CPU", "BLOB", blob)
            client.execute_command("AI.MODELEXECUTE", "m", "INPUTS", 1, "x", "OUTPUTS", 1, "y")
            client.execute_command(*(("AI.MODELDEL", "m"), ("UNLINK", "m"))[number % 2])
            wait_until(lambda: client.info("shardqa")["shardqa_models"] == 0, "the module has let the model go")
            redis.append(int(client.info("memory")["used_memory"]))
            worker.append(anonymous(pid))
        assert int(client.info("shardqa")["shardqa_worker_pid"]) == pid
        wait_until(lambda: not models.exists() or not list(models.iterdir()), "the files are gone")
    assert growth(redis) < 1 * MB, redis
    assert growth(worker) < TIMES / 3 * MB / 2, worker  # a leak of each would be twice that
