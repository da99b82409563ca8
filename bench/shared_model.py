"""Memory of four nodes on one host that all store one model of 440 MB: with MODELS its file is there once.

What counts is PSS (each page divided by the processes that map it) of all four Redis and their workers, before the
model is stored and after it has run on each; the model is random weights, made here. The last line is the time of a
run against onnxruntime's own session, which rearranges the weights into a copy of its own: what sharing costs.
"""

import os
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from common import direct_session, lone_nodes, port_of, seconds_of, worker_pid
from onnx import TensorProto, helper, numpy_helper
from redis import Redis

from shardqa import ai

NODES = int(os.environ.get("NODES", "4"))
WIDTH = 1024
LAYERS = int(os.environ.get("LAYERS", "105"))  # of 4 MiB each
ROWS = 16
RUNS = 7
WANTED = 1.5  # times the model


def write_model(path: Path) -> None:
    dice = np.random.default_rng(0)
    weights = [dice.standard_normal((WIDTH, WIDTH), dtype=np.float32) * np.float32(0.03) for _ in range(LAYERS)]
    constants = [numpy_helper.from_array(weight, f"w{n}") for n, weight in enumerate(weights)]
    nodes = [helper.make_node("MatMul", [f"y{n}", f"w{n}"], [f"y{n + 1}"]) for n in range(LAYERS)]
    first, last = (
        helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", WIDTH]) for name in ("y0", f"y{LAYERS}")
    )
    graph = helper.make_graph(nodes, "random", [first], [last], initializer=constants)
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    path.write_bytes(made.SerializeToString())


def proportional(clients: Sequence[Redis]) -> float:
    """MB of all processes."""
    pids = [int(c.info("server")["process_id"]) for c in clients]
    pids += [worker_pid(port_of(c)) for c in clients]
    lines = [line for pid in pids for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()]
    return sum(int(line.split()[1]) for line in lines if line.startswith("Pss:")) / 1024


def median_ms(work: Callable[[], Any]) -> float:
    return 1e3 * float(np.median([seconds_of(work) for _ in range(RUNS)]))


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="shardqa-bench-") as name:
        folder = Path(name)
        write_model(folder / "model.onnx")
        size = (folder / "model.onnx").stat().st_size / (1 << 20)
        rows = np.random.default_rng(1).standard_normal((ROWS, WIDTH)).astype(np.float32)
        shared_files = ("MODELS", str(folder / "models"), "MODEL_FILE_BYTES", str(WIDTH))
        with lone_nodes(NODES, shared_files) as clients:
            before = proportional(clients)
            callers = [ai.Client(client) for client in clients]
            outputs = []
            for caller in callers:
                caller.model_store("m", "ONNX", folder / "model.onnx")
                outputs.append(caller.run("m", [rows])[0])
            after = proportional(clients)
            files = list((folder / "models").iterdir())
            together = median_ms(lambda: callers[0].run("m", [rows]))
            for caller in callers:
                caller.model_delete("m")
            deadline = time.monotonic() + 30
            while list((folder / "models").iterdir()) and time.monotonic() < deadline:
                time.sleep(0.1)
            left = len(list((folder / "models").iterdir()))
        session = direct_session((folder / "model.onnx").read_bytes())
        (expected,) = session.run(None, {"y0": rows})
        assert all(np.allclose(output, expected, atol=1e-4) for output in outputs), "all nodes must compute the same"
        own = median_ms(lambda: session.run(None, {"y0": rows}))
    print(
        f"one model of {size:.0f} MB on {NODES} nodes: {after:.0f} MB of all Redis and workers, {before:.0f} without it"
    )
    print(
        f"  {after / size:.2f} times the model in all (wanted {WANTED}), the model itself {(after - before) / size:.2f}"
    )
    print(f"  files: {len(files)} while stored, {left} after the last key was deleted")
    print(f"  a run of {ROWS} rows: {together / own:.2f}x of a session of its own")


if __name__ == "__main__":
    main()
