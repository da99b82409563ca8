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
from shardqa_toolchain.conversion.verify import FLOAT, QUANTIZED, Thresholds, Verdict, compare, thresholds_for, verify
from toolchain.tests.tiny import one_question
from toolchain.tests.tiny_models import Weights, tiny_config, tiny_weights, write_tiny

LAYERS = ((4, 64), (4, 64))
CONFIG = tiny_config(LAYERS)
FLOATS, INT8 = FloatLayers(), TokenLayers()

Change = Callable[[Any], None]


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny(tmp_path_factory.mktemp("reader"), tiny_weights(LAYERS), CONFIG)


def unchanged(_: Any) -> None:
    return


def write_onnx(source: Path, folder: Path, layers: Layers, change: Change = unchanged) -> Path:
    """Writes the ONNX folder of a checkpoint, its network changed."""
    checkpoint = Checkpoint.load(source)
    model = network(checkpoint.weights, checkpoint.shape, layers, [SpanHead.of(checkpoint.weights)])
    change(model)
    folder.mkdir(parents=True)
    onnx.save(model, folder / "model.onnx")
    for name in ("tokenizer.json", "config.json"):
        shutil.copyfile(source / name, folder / name)
    return folder


def changed(name: str, change: Callable[[Any], Any]) -> Change:
    """Returns what changes a constant of a network."""

    def apply(model: Any) -> None:
        (tensor,) = [one for one in model.graph.initializer if one.name == name]
        value = numpy_helper.to_array(tensor)
        tensor.CopyFrom(numpy_helper.from_array(np.asarray(change(value), value.dtype), name))

    return apply


def test_an_exact_conversion_passes_to_the_fifth_decimal_and_its_verdict_goes_into_a_card(
    reader: Path, tmp_path: Path
) -> None:
    verdict = verify(reader, write_onnx(reader, tmp_path / "b", FLOATS))
    assert verdict.error < 1e-5
    assert verdict.span_agreement == 100
    card = json.loads(json.dumps(verdict.as_json(), allow_nan=False))
    assert (card["passed"], card["thresholds"]["error"]) == (True, FLOAT.error)


def test_int8_passes_as_quantized_and_not_as_exact(reader: Path, tmp_path: Path) -> None:
    exact, int8 = write_onnx(reader, tmp_path / "float", FLOATS), write_onnx(reader, tmp_path / "int8", INT8)
    assert verify(reader, int8, thresholds=QUANTIZED).passed
    assert not verify(reader, int8, thresholds=FLOAT).passed
    assert [thresholds_for(one) for one in (reader, exact, int8)] == [FLOAT, FLOAT, QUANTIZED]


def permuted(weights: Weights) -> Weights:
    """Layers 0 and 1 in each other's place."""
    place = {"layer.0.": "layer.1.", "layer.1.": "layer.0."}
    there = {name: next((part for part in place if part in name), "") for name in weights}
    return {name.replace(part, place[part]) if part else name: weights[name] for name, part in there.items()}


def transposed(weights: Weights) -> Weights:
    name = "bert.encoder.layer.0.attention.output.dense.weight"
    return {**weights, name: weights[name].T.copy()}


def without_a_bias(weights: Weights) -> Weights:
    name = "bert.encoder.layer.1.output.dense.bias"
    return {**weights, name: weights[name] * 0}


@pytest.mark.parametrize("wrong", [permuted, transposed, without_a_bias])
def test_a_network_of_wrong_weights_does_not_pass(
    reader: Path, tmp_path: Path, wrong: Callable[[Weights], Weights]
) -> None:
    broken = write_tiny(tmp_path / "broken", wrong(tiny_weights(LAYERS)), CONFIG)
    verdict = verify(reader, write_onnx(broken, tmp_path / "b", FLOATS))
    assert "spreads" in verdict.failures[0]


BROKEN: dict[str, tuple[Layers, Thresholds, Change]] = {
    "scaled weights": (INT8, QUANTIZED, changed("layer.0.widen.scale", lambda scale: scale * 1.5)),
    "a wrong zero point": (INT8, QUANTIZED, changed("unit.zero", lambda zero: zero - 16)),
    "a wrong scale of activations": (INT8, QUANTIZED, changed("unit.scale", lambda scale: scale * 2)),
    "another table": (INT8, QUANTIZED, changed("words.table", lambda table: table[::-1])),
    "a hundredth too large": (FLOATS, FLOAT, changed("layer.1.narrow.weight", lambda weight: weight * 1.01)),
}


@pytest.mark.parametrize(("layers", "thresholds", "change"), BROKEN.values(), ids=BROKEN)
def test_a_conversion_gone_wrong_does_not_pass(
    reader: Path, tmp_path: Path, layers: Layers, thresholds: Thresholds, change: Change
) -> None:
    assert not verify(reader, write_onnx(reader, tmp_path / "b", layers, change), thresholds=thresholds).passed


def test_logits_that_are_not_finite_do_not_pass(reader: Path, tmp_path: Path) -> None:
    change = changed("span.weight", lambda weight: weight * np.nan)
    verdict = verify(reader, write_onnx(reader, tmp_path / "b", FLOATS, change))
    assert verdict.failures == ("some logits are NaN or infinite",)


def test_without_a_tokenizer_random_wordpieces_are_compared(reader: Path, tmp_path: Path) -> None:
    b = write_onnx(reader, tmp_path / "b", FLOATS)
    a = Path(shutil.copytree(reader, tmp_path / "a"))
    for folder in (a, b):
        (folder / "tokenizer.json").unlink()
    verdict = verify(a, b)
    assert (verdict.passed, verdict.inputs, verdict.f1) == (True, "32 rows of random wordpieces", None)
    with pytest.raises(BadModel, match=r"questions can't be put to this network: there is no tokenizer\.json"):
        verify(a, b, questions=tmp_path / "dev.json")


def test_questions_give_em_and_f1_of_both(reader: Path, tmp_path: Path) -> None:
    questions = one_question(tmp_path / "dev.json")
    verdict = verify(reader, write_onnx(reader, tmp_path / "b", FLOATS), questions)
    assert verdict.inputs == "1 questions of dev.json"
    assert verdict.f1 is not None
    assert verdict.f1[0] == verdict.f1[1]
    with pytest.raises(BadData, match="has no question with an answer"):
        verify(reader, reader, one_question(tmp_path / "dev.json", answers=()))


def test_a_folder_that_holds_no_model_is_refused(reader: Path, tmp_path: Path) -> None:
    with pytest.raises(BadModel, match="is no model: name an ONNX file, or a folder"):
        verify(reader, tmp_path)


def test_models_of_different_tokenizers_are_not_compared(reader: Path, tmp_path: Path) -> None:
    b = Path(shutil.copytree(reader, tmp_path / "b"))
    (b / "tokenizer.json").write_text((reader / "tokenizer.json").read_text() + "\n")
    with pytest.raises(BadModel, match="only models with one tokenizer can be compared"):
        verify(reader, b)


def renamed(model: Any) -> None:
    for node in model.graph.node:
        node.output[:] = [name.replace("_logits", "_other") for name in node.output]
    for port in model.graph.output:
        port.name = port.name.replace("_logits", "_other")


def greedy(model: Any) -> None:
    model.graph.input.append(onnx.helper.make_tensor_value_info("pixels", onnx.TensorProto.FLOAT, [1]))


@pytest.mark.parametrize(
    ("change", "message"), [(renamed, "nothing to compare"), (greedy, "wants pixels; only input_ids")]
)
def test_networks_of_other_outputs_or_inputs_are_refused(
    reader: Path, tmp_path: Path, change: Change, message: str
) -> None:
    with pytest.raises(BadModel, match=message):
        verify(reader, write_onnx(reader, tmp_path / "b", FLOATS, change))


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
    assert (verdict.largest_difference, verdict.span_agreement) == (0.5, 100)
    assert verdict.mean_difference == pytest.approx(0.5)
    assert verdict.error == pytest.approx(0.5 / verdict.spread)


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
    for row, other in zip(random_probe(200, 40, 9).rows, random_probe(200, 40, 9).rows, strict=True):
        np.testing.assert_array_equal(row.input_ids, other.input_ids)
        assert len(row) <= 40
        assert row.input_ids.max() < 200
