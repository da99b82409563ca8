"""Encoders in float ONNX files become checkpoints of as many layers that compute the same."""

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from shardqa.errors import BadModel
from shardqa.models import shipped
from shardqa_toolchain import cards
from shardqa_toolchain.conversion.builder import Output
from shardqa_toolchain.conversion.checkpoint import Checkpoint
from shardqa_toolchain.conversion.graph import BertShape, FloatLayers, network
from shardqa_toolchain.training.exported import HEAD_SIZE, STATES, adopt_exported
from toolchain.tests import tiny
from toolchain.tests.tiny_models import HIDDEN


class States:
    """A head that gives the encoder's output itself."""

    def write(self, graph: Any, hidden: str) -> list[Output]:
        graph.node("Identity", [hidden], STATES)
        return [Output(STATES, ("batch", "sequence", HIDDEN))]


def exported(file: Path, layers: int, changed: float = 0.0) -> Path:
    """Writes a random encoder with the names that torch gives; its products differ by ``changed``."""
    weights = {name: one for name, one in tiny.weights(layers, 1).items() if name.startswith("bert.")}
    model = network(weights, BertShape(layers, HEAD_SIZE, 1e-12), FloatLayers(), [States()])
    for n, (name, value) in enumerate(weights.items()):
        own = name.removeprefix("bert.")
        if value.ndim == 2 and "encoder" in name:
            node = f"/{own.removesuffix('.weight').replace('.', '/').replace('layer/', 'layer.')}/MatMul"
            inputs = [f"rows.{n}", f"onnx::MatMul_{n}"]
            model.graph.node.append(helper.make_node("MatMul", inputs, [f"unused.{n}"], node))
            model.graph.initializer.append(numpy_helper.from_array(value[:1], inputs[0]))
            own, value = inputs[1], (value.T + changed * np.sign(value.T)).astype(np.float32)
        model.graph.initializer.append(numpy_helper.from_array(np.ascontiguousarray(value), own))
    onnx.save(model, file)
    return file


@pytest.mark.parametrize("layers", [1, 3])
def test_it_is_read_with_all_its_layers(layers: int, tmp_path: Path) -> None:
    file = exported(tmp_path / "m.onnx", layers)
    told = tiny.command("adopt", file, "--words", shipped.folder(), "--out", tmp_path / "out")
    assert told.exit_code == 0
    assert Checkpoint.load(tmp_path / "out").shape == BertShape(layers, HEAD_SIZE, 1e-12)
    (step,) = cards.Card.load(tmp_path / "out").steps
    assert step.verdict == {"least_cosine": pytest.approx(1, abs=1e-4)}


def test_a_checkpoint_that_computes_something_else_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadModel, match="cosines"):
        adopt_exported(exported(tmp_path / "m.onnx", 2, changed=0.5), shipped.folder(), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_network_with_other_names_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadModel, match="BERT's names"):
        adopt_exported(shipped.folder() / "model.onnx", shipped.folder(), tmp_path / "out")
