"""A network for several tasks on a real node: one AI.MODELEXECUTE gives every task's output."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.nodes import Node

heads = pytest.importorskip("shardqa_toolchain.conversion.heads", reason="the network is made with onnx")

TASKS = {
    "form": "heads",
    "tasks": [
        {"name": "qa", "kind": "span", "labels": []},
        {"name": "answerable", "kind": "answerable", "labels": ["no", "yes"]},
        {"name": "topic", "kind": "text", "labels": ["lake", "river", "town"]},
        {"name": "places", "kind": "tokens", "labels": ["O", "TOWN", "WATER"]},
    ],
}


def network(folder: Path) -> Path:
    from shardqa_toolchain.conversion.checked import Check
    from shardqa_toolchain.conversion.quantize import quantize
    from toolchain.tests.tiny_models import HIDDEN, tiny_config, tiny_weights, write_tiny

    dice = np.random.default_rng(0)
    sizes = {"heads.answerable": 2, "heads.topic": 3, "heads.places": 3}
    weights = tiny_weights() | {
        f"{name}.{part}": dice.normal(0, 1, shape).astype(np.float32)
        for name, labels in sizes.items()
        for part, shape in (("weight", (labels, HIDDEN)), ("bias", (labels,)))
    }
    write_tiny(folder / "several", weights, tiny_config(tasks=TASKS))
    quantize(folder / "several", folder / "int8", Check(limit=4, keep_failing=True))
    return folder / "int8" / "model.onnx"


def test_one_run_gives_every_tasks_output_by_name(redis_node: Node, tmp_path: Path) -> None:
    import onnxruntime

    file = network(tmp_path)
    ids = np.arange(104, 116, dtype=np.int64)[None]
    feeds = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": (ids > 108).astype(np.int64)}
    session = onnxruntime.InferenceSession(str(file))
    names = [one.name for one in session.get_outputs()]
    assert names == ["start_logits", "end_logits", "answerable_logits", "topic_logits", "places_logits"]
    with redis_node.client() as client:
        client.execute_command("AI.MODELSTORE", "tasks{t}", "ONNX", "CPU", "BLOB", file.read_bytes())
        description: Any = client.execute_command("AI.MODELGET", "tasks{t}", "META")
        assert [one.decode() for one in description[description.index(b"outputs") + 1]] == names
        for name, value in feeds.items():
            client.execute_command("AI.TENSORSET", f"{name}{{t}}", "INT64", *value.shape, "BLOB", value.tobytes())
        inputs, outputs = ([f"{name}{{t}}" for name in some] for some in (feeds, names))
        client.execute_command("AI.MODELEXECUTE", "tasks{t}", "INPUTS", 3, *inputs, "OUTPUTS", 5, *outputs)
        for name, wanted in zip(outputs, session.run(None, feeds), strict=True):
            blob: Any = client.execute_command("AI.TENSORGET", name, "BLOB")
            assert np.frombuffer(blob, np.float32).tolist() == np.asarray(wanted).ravel().tolist()
