"""Fusions on files that others exported: the same answers from fewer operators, or a clear refusal."""

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import onnx
import pytest
import torch
import transformers

from shardqa.errors import BadModel
from shardqa_toolchain.cards import Card
from shardqa_toolchain.conversion.export import export
from shardqa_toolchain.conversion.optimize import optimize
from shardqa_toolchain.conversion.verify import verify
from toolchain.tests.tiny_models import tiny_config, tiny_weights, write_tiny

LAYERS = ((4, 64), (4, 64))


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny(
        tmp_path_factory.mktemp("reader"), tiny_weights(LAYERS), tiny_config(LAYERS, intermediate_size=64)
    )


@pytest.fixture(scope="module")
def traced(reader: Path) -> Path:
    """The reader of transformers as torch's own exporter writes it, beside its tokenizer and settings."""
    kind = transformers.BertForQuestionAnswering
    bert: Any = kind.from_pretrained(reader, attn_implementation="eager", return_dict=False)
    inputs, outputs = ["input_ids", "attention_mask", "token_type_ids"], ["start_logits", "end_logits"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            bert.eval(),
            tuple(torch.ones(2, 5, dtype=torch.int64) for _ in inputs),
            str(reader / "traced.onnx"),
            input_names=inputs,
            output_names=outputs,
            dynamic_axes={name: {0: "batch", 1: "sequence"} for name in inputs + outputs},
            opset_version=17,
            dynamo=False,
        )
    return reader / "traced.onnx"


def test_a_traced_network_is_fused_and_answers_the_same(reader: Path, traced: Path, tmp_path: Path) -> None:
    assert optimize(traced, tmp_path / "out").passed
    fused = Card.load(tmp_path / "out").steps[-1].settings["fused"]
    assert (fused["LayerNormalization"], fused["BiasGelu"]) == (5, 2)
    before, after = (len(onnx.load(file).graph.node) for file in (traced, tmp_path / "out" / "model.onnx"))
    assert after <= before / 2
    assert verify(reader, tmp_path / "out").passed


def test_a_file_that_is_no_network_is_refused(traced: Path, tmp_path: Path) -> None:
    (tmp_path / "cut.onnx").write_bytes(traced.read_bytes()[:30_000])
    with pytest.raises(BadModel, match=r"cut\.onnx is not an ONNX file"):
        optimize(tmp_path / "cut.onnx", tmp_path / "out")
    with pytest.raises(BadModel, match=r"model\.onnx is not an ONNX file: .*No such file"):
        optimize(tmp_path, tmp_path / "out")


def of_the_future(model: Any) -> None:
    model.opset_import[0].version = 99


def of_another_world(model: Any) -> None:
    model.graph.node[-1].op_type = "Divine"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (of_the_future, r"is of opset 99, at most \d+ can be run; export it with an older one"),
        (of_another_world, r"can't be loaded.*Divine"),
    ],
)
def test_a_network_that_can_not_run_here_is_refused(
    traced: Path, tmp_path: Path, change: Callable[[Any], None], message: str
) -> None:
    model = onnx.load(traced)
    change(model)
    onnx.save(model, tmp_path / "changed.onnx")
    with pytest.raises(BadModel, match=message):
        optimize(tmp_path / "changed.onnx", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_what_is_fused_already_stays_as_it_is(reader: Path, tmp_path: Path) -> None:
    export(reader, tmp_path / "onnx")
    assert optimize(tmp_path / "onnx", tmp_path / "out").passed
    assert [step.name for step in Card.load(tmp_path / "out").steps] == ["export", "optimize"]
