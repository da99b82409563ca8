"""Readers with the outputs evidence and relevance: exported, quantized, checked, taken back."""

from pathlib import Path

import numpy as np
import onnx
import pytest
import torch

from shardqa.models.session import ReaderSession
from shardqa_toolchain.conversion.checked import Check
from shardqa_toolchain.conversion.checkpoint import Checkpoint
from shardqa_toolchain.conversion.dequantize import dequantize
from shardqa_toolchain.conversion.export import export
from shardqa_toolchain.conversion.networks import open_network
from shardqa_toolchain.conversion.quantize import quantize
from shardqa_toolchain.conversion.verify import QUANTIZED, verify
from shardqa_toolchain.training.saved import load_reader
from toolchain.tests import tiny
from toolchain.tests.tiny_models import tiny_batch

SHAPES = {"start_logits": (2, 24), "end_logits": (2, 24), "evidence": (2, 24), "relevance": (2,)}


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny.checkpoint(tmp_path_factory.mktemp("reader") / "checkpoint", evidence=True)


@pytest.fixture(scope="module")
def exported(reader: Path) -> Path:
    export(reader, reader.with_name("onnx"))
    return reader.with_name("onnx")


def test_an_exported_reader_gives_the_outputs_of_the_network_that_was_trained(reader: Path, exported: Path) -> None:
    batch = tiny_batch()
    network = load_reader(reader).eval()
    with torch.no_grad():
        hidden = network.encoder(*(torch.from_numpy(value) for value in batch.feeds().values()))[-1]
        logits = network.logits(hidden)
    outputs = open_network(exported).network.outputs(batch)
    assert {name: value.shape for name, value in outputs.items()} == SHAPES
    real = batch.attention_mask == 1
    assert logits.evidence is not None
    assert logits.relevance is not None
    np.testing.assert_allclose(outputs["evidence"][real], logits.evidence.numpy()[real], atol=1e-4)
    np.testing.assert_allclose(outputs["relevance"], logits.relevance.numpy(), atol=1e-4)
    start, end = ReaderSession(exported).logits(batch)
    assert start.shape == end.shape == (2, 24)


def test_int8_keeps_the_outputs_and_they_come_back(reader: Path, tmp_path: Path) -> None:
    assert quantize(reader, tmp_path / "int8").passed
    assert dequantize(tmp_path / "int8", tmp_path / "back").passed
    before, after = Checkpoint.load(reader).weights, Checkpoint.load(tmp_path / "back").weights
    for name in ("evidence.weight", "evidence.bias", "relevance.weight", "relevance.bias"):
        np.testing.assert_array_equal(after[name], before[name])


def test_each_of_twelve_layers_comes_back_from_int8(tmp_path: Path) -> None:
    deep = tiny.checkpoint(tmp_path / "deep", 12, evidence=True)
    kept = Check(keep_failing=True)  # noise of random layers adds up
    quantize(deep, tmp_path / "int8", kept)
    dequantize(tmp_path / "int8", tmp_path / "back", kept)
    before, after = Checkpoint.load(deep).weights, Checkpoint.load(tmp_path / "back").weights
    assert before.keys() == after.keys()
    for name, value in before.items():
        likeness = (value * after[name]).sum() / np.linalg.norm(value) / np.linalg.norm(after[name])
        assert likeness > 0.98, name


@pytest.mark.parametrize("name", ["evidence", "relevance"])
def test_a_wrong_output_does_not_pass_however_right_the_others_are(reader: Path, exported: Path, name: str) -> None:
    model = onnx.load(exported / "model.onnx")
    weight = next(one for one in model.graph.initializer if one.name == f"{name}.weight")
    turned = onnx.numpy_helper.to_array(weight)[::-1]
    weight.CopyFrom(onnx.numpy_helper.from_array(np.ascontiguousarray(turned), weight.name))
    wrong = exported.with_name(f"wrong-{name}.onnx")
    onnx.save(model, wrong)
    verdict = verify(reader, wrong, thresholds=QUANTIZED)
    assert verdict.output == name
    assert [f"logits of {name} differ" in failure for failure in verdict.failures] == [True]
