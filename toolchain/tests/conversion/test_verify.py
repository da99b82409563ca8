"""The comparison of two networks: what it finds, and that broken conversions do not pass it."""

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from onnx import numpy_helper

from shardqa.errors import BadData, BadModel
from shardqa.models.reader import Batch
from shardqa_toolchain.conversion.checkpoint import Checkpoint
from shardqa_toolchain.conversion.graph import FloatLayers, Layers, SpanHead, network
from shardqa_toolchain.conversion.int8 import TokenLayers
from shardqa_toolchain.conversion.networks import OpenNetwork
from shardqa_toolchain.conversion.probes import Probe, random_probe
from shardqa_toolchain.conversion.verify import (
    FLOAT,
    QUANTIZED,
    Thresholds,
    Verdict,
    compare,
    thresholds_for,
    verify,
)
from toolchain.tests.tiny_models import Weights, tiny_config, tiny_weights, write_tiny

LAYERS = ((4, 64), (4, 64))
CONFIG = tiny_config(LAYERS)
FILES = ("tokenizer.json", "config.json")


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny(tmp_path_factory.mktemp("reader"), tiny_weights(LAYERS), CONFIG)


def write_onnx(source: Path, folder: Path, layers: Layers, change: Callable[[Any], None] = lambda model: None) -> Path:
    """The ONNX folder of a checkpoint, its network changed."""
    checkpoint = Checkpoint.load(source)
    model = network(checkpoint.weights, checkpoint.shape, layers, [SpanHead.of(checkpoint.weights)])
    change(model)
    folder.mkdir(parents=True)
    onnx.save(model, folder / "model.onnx")
    for name in FILES:
        shutil.copyfile(source / name, folder / name)
    return folder


def changed(name: str, change: Callable[[Any], Any]) -> Callable[[Any], None]:
    """Changes a constant of a network."""

    def apply(model: Any) -> None:
        (tensor,) = [one for one in model.graph.initializer if one.name == name]
        value = numpy_helper.to_array(tensor)
        tensor.CopyFrom(numpy_helper.from_array(np.asarray(change(value), value.dtype), name))

    return apply


def test_an_exact_conversion_passes_to_the_fifth_decimal(reader: Path, tmp_path: Path) -> None:
    verdict = verify(reader, write_onnx(reader, tmp_path / "b", FloatLayers()))
    assert verdict.passed
    assert verdict.thresholds == FLOAT
    assert verdict.error < 1e-5
    assert verdict.span_agreement == 100


def test_int8_passes_as_quantized_and_not_as_exact(reader: Path, tmp_path: Path) -> None:
    b = write_onnx(reader, tmp_path / "b", TokenLayers())
    assert verify(reader, b, thresholds=QUANTIZED).passed
    assert not verify(reader, b, thresholds=FLOAT).passed


def test_what_a_network_holds_chooses_the_thresholds(reader: Path, tmp_path: Path) -> None:
    assert thresholds_for(reader) == FLOAT
    assert thresholds_for(write_onnx(reader, tmp_path / "float", FloatLayers())) == FLOAT
    assert thresholds_for(write_onnx(reader, tmp_path / "int8", TokenLayers())) == QUANTIZED


def permuted(weights: Weights) -> Weights:
    """Layers 0 and 1 in each other's place."""
    place = {"0": "1", "1": "0"}
    parts = {name: name.split(".") for name in weights}
    return {
        ".".join([*one[:3], place[one[3]], *one[4:]]) if one[1:3] == ["encoder", "layer"] else name: weights[name]
        for name, one in parts.items()
    }


def transposed(weights: Weights) -> Weights:
    return {
        name: value.T.copy() if name.endswith("0.attention.output.dense.weight") else value
        for name, value in weights.items()
    }


def without_a_bias(weights: Weights) -> Weights:
    return {name: value * (name != "bert.encoder.layer.1.output.dense.bias") for name, value in weights.items()}


@pytest.mark.parametrize("wrong", [permuted, transposed, without_a_bias])
def test_a_network_of_wrong_weights_does_not_pass(
    reader: Path, tmp_path: Path, wrong: Callable[[Weights], Weights]
) -> None:
    broken = write_tiny(tmp_path / "broken", wrong(tiny_weights(LAYERS)), CONFIG)
    b = write_onnx(broken, tmp_path / "b", FloatLayers())
    verdict = verify(reader, b)
    assert not verdict.passed
    assert "spreads" in verdict.failures[0]


BROKEN: dict[str, Callable[[Any], None]] = {
    "scaled weights": changed("layer.0.widen.scale", lambda scale: scale * 1.5),
    "a wrong zero point": changed("unit.zero", lambda zero: zero - 16),
    "a wrong scale of activations": changed("unit.scale", lambda scale: scale * 2),
    "another table": changed("words.table", lambda table: table[::-1]),
}


@pytest.mark.parametrize("change", BROKEN.values(), ids=BROKEN)
def test_int8_gone_wrong_does_not_pass(reader: Path, tmp_path: Path, change: Callable[[Any], None]) -> None:
    b = write_onnx(reader, tmp_path / "b", TokenLayers(), change)
    assert not verify(reader, b, thresholds=QUANTIZED).passed


def test_weights_a_hundredth_too_large_are_not_an_exact_conversion(reader: Path, tmp_path: Path) -> None:
    change = changed("layer.1.narrow.weight", lambda weight: weight * 1.01)
    assert not verify(reader, write_onnx(reader, tmp_path / "b", FloatLayers(), change)).passed


def test_logits_that_are_not_finite_do_not_pass(reader: Path, tmp_path: Path) -> None:
    change = changed("span.weight", lambda weight: weight * np.nan)
    verdict = verify(reader, write_onnx(reader, tmp_path / "b", FloatLayers(), change))
    assert verdict.failures == ("some logits are NaN or infinite",)


def test_a_verdict_goes_into_a_card(reader: Path, tmp_path: Path) -> None:
    found = verify(reader, write_onnx(reader, tmp_path / "b", FloatLayers())).as_json()
    again = json.loads(json.dumps(found, allow_nan=False))
    assert again["passed"] is True
    assert again["thresholds"]["error"] == FLOAT.error


def test_without_a_tokenizer_random_wordpieces_are_compared(reader: Path, tmp_path: Path) -> None:
    b = write_onnx(reader, tmp_path / "b", FloatLayers())
    a = Path(shutil.copytree(reader, tmp_path / "a"))
    for folder in (a, b):
        (folder / "tokenizer.json").unlink()
    verdict = verify(a, b)
    assert verdict.passed
    assert verdict.inputs == "32 rows of random wordpieces"
    assert verdict.f1 is None
    with pytest.raises(BadModel, match=r"questions can't be put to this network: there is no tokenizer\.json"):
        verify(a, b, questions=tmp_path / "dev.json")


def squad_file(path: Path, answer: str | None) -> Path:
    answers = [{"text": answer, "answer_start": 0}] if answer else []
    question = {"id": "1", "question": "who am i", "answers": answers}
    paragraph = {"context": "me and you", "qas": [question]}
    path.write_text(json.dumps({"data": [{"title": "t", "paragraphs": [paragraph]}]}))
    return path


def test_questions_give_em_and_f1_of_both(reader: Path, tmp_path: Path) -> None:
    questions = squad_file(tmp_path / "dev.json", "me")
    verdict = verify(reader, write_onnx(reader, tmp_path / "b", FloatLayers()), questions)
    assert verdict.inputs == "1 questions of dev.json"
    assert verdict.f1 is not None
    assert verdict.f1[0] == verdict.f1[1]


def test_questions_without_answers_are_refused(reader: Path, tmp_path: Path) -> None:
    questions = squad_file(tmp_path / "dev.json", None)
    with pytest.raises(BadData, match="has no question with an answer"):
        verify(reader, reader, questions)


def test_a_folder_that_holds_no_model_is_refused(reader: Path, tmp_path: Path) -> None:
    with pytest.raises(BadModel, match="is no model: name an ONNX file, or a folder"):
        verify(reader, tmp_path)


def test_an_onnx_file_cut_short_is_refused(reader: Path, tmp_path: Path) -> None:
    file = write_onnx(reader, tmp_path / "b", FloatLayers()) / "model.onnx"
    file.write_bytes(file.read_bytes()[:50_000])
    with pytest.raises(BadModel, match="can't be loaded"):
        verify(reader, file.parent)


def test_models_of_different_tokenizers_are_not_compared(reader: Path, tmp_path: Path) -> None:
    b = Path(shutil.copytree(reader, tmp_path / "b"))
    (b / "tokenizer.json").write_text((reader / "tokenizer.json").read_text() + "\n")
    with pytest.raises(BadModel, match="only models with one tokenizer can be compared"):
        verify(reader, b)


def test_networks_without_an_output_in_common_are_refused(reader: Path, tmp_path: Path) -> None:
    def rename(model: Any) -> None:
        for port in [*model.graph.output, *model.graph.node]:
            port.name = port.name.replace("_logits", "_other")
        for node in model.graph.node:
            for number, name in enumerate(node.output):
                node.output[number] = name.replace("_logits", "_other")

    with pytest.raises(BadModel, match="nothing to compare"):
        verify(reader, write_onnx(reader, tmp_path / "b", FloatLayers(), rename))


def test_a_network_that_wants_other_inputs_is_refused(reader: Path, tmp_path: Path) -> None:
    def ask_for_more(model: Any) -> None:
        model.graph.input.append(onnx.helper.make_tensor_value_info("pixels", onnx.TensorProto.FLOAT, [1]))

    with pytest.raises(BadModel, match="wants pixels; only input_ids"):
        verify(reader, write_onnx(reader, tmp_path / "b", FloatLayers(), ask_for_more))


@dataclass
class Ramp:
    """Logits that rise from token to token, shifted; padding is far off."""

    shift: float
    padding: float = 0.0

    def outputs(self, batch: Batch) -> dict[str, NDArray[np.float32]]:
        rows, tokens = batch.input_ids.shape
        ramp = np.tile(np.arange(tokens, dtype=np.float32), (rows, 1)) + np.float32(self.shift)
        logits = np.where(batch.attention_mask == 1, ramp, np.float32(self.padding))
        return {"start_logits": logits, "end_logits": logits}


def compared(b: Ramp, thresholds: Thresholds = FLOAT, rows: Probe | None = None) -> Verdict:
    a, other = (OpenNetwork(Path(name), network, None, 1000, 512) for name, network in (("a", Ramp(0)), ("b", b)))
    return compare(a, other, rows or random_probe(1000, 512, 8), thresholds)


def test_differences_are_those_of_real_tokens() -> None:
    verdict = compared(Ramp(0.5, padding=1e6))
    assert verdict.largest_difference == 0.5
    assert verdict.mean_difference == pytest.approx(0.5)
    assert verdict.error == pytest.approx(0.5 / verdict.spread)
    assert verdict.span_agreement == 100


@pytest.mark.parametrize(
    ("thresholds", "passes"),
    [
        (Thresholds(), True),
        (Thresholds(error=1), True),
        (Thresholds(error=0.01), False),
        (Thresholds(largest_difference=0.01), False),
        (Thresholds(span_agreement=100), True),
    ],
)
def test_each_threshold_is_looked_at_where_it_is_set(thresholds: Thresholds, passes: bool) -> None:
    assert compared(Ramp(0.5), thresholds).passed is passes


def test_random_rows_are_always_the_same_and_fit_the_network() -> None:
    one, again = random_probe(200, 40, 9), random_probe(200, 40, 9)
    for row, other in zip(one.rows, again.rows, strict=True):
        np.testing.assert_array_equal(row.input_ids, other.input_ids)
        assert len(row) <= 40
        assert row.input_ids.max() < 200
