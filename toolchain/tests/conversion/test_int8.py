"""Tables and products in int8: near the exact network, independent of the batch."""

from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from shardqa.models.reader import Batch
from shardqa_toolchain.cards import Card
from shardqa_toolchain.conversion.checked import Check
from shardqa_toolchain.conversion.checkpoint import Checkpoint
from shardqa_toolchain.conversion.graph import BertShape, FloatLayers, Layers, SpanHead, network
from shardqa_toolchain.conversion.int8 import COLUMN_STEPS, TokenLayers, evening, quantized
from shardqa_toolchain.conversion.quantize import quantize
from shardqa_toolchain.conversion.ranges import measure_inputs
from toolchain.tests.tiny_models import LAYERS, tiny_batch, tiny_config, tiny_weights, write_tiny

FLOATS = st.floats(-1e6, 1e6, width=32)


@given(arrays.arrays(np.float32, (5, 3), elements=FLOATS))
@example(np.full((5, 3), 1.281e-42, dtype=np.float32))  # a scale made of these would be off by 2 %
def test_a_quantized_matrix_is_within_half_a_step(values: np.ndarray[Any, np.dtype[np.float32]]) -> None:
    steps, scale = quantized(values, axis=0, steps=100)
    assert np.abs(steps).max() <= 100
    assert (np.abs(steps * scale - values) <= scale * 0.5001).all()


@given(
    arrays.arrays(np.float32, 6, elements=st.floats(0, 1e4, width=32)),
    arrays.arrays(np.float32, (6, 3), elements=st.floats(-1e3, 1e3, width=32)),
)
def test_evening_changes_sizes_and_no_product(largest: Any, weight: Any) -> None:
    factors = evening(largest, weight)
    assert (factors > 0).all()
    np.testing.assert_allclose((largest / factors) @ (weight * factors[:, None]), largest @ weight, rtol=1e-4, atol=10)


def test_what_never_shows_and_what_counts_for_nothing_is_not_evened() -> None:
    weight = np.array([[2], [0], [8]], np.float32)
    np.testing.assert_allclose(evening(np.array([0, 9, 2], np.float32), weight), [1, 1, 1])


def test_a_large_input_and_its_small_row_get_as_large_as_each_other() -> None:
    largest, weight = np.array([16, 1, 1], np.float32), np.array([[0.25], [1], [1]], np.float32)
    factors = evening(largest, weight)
    times_as_large = largest / factors / (weight[:, 0] * factors)
    np.testing.assert_allclose(times_as_large, times_as_large[0], rtol=1e-5)


def run(model: Any, batch: Batch) -> Any:
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return np.stack(session.run(["start_logits", "end_logits"], batch.feeds()), axis=-1)


def network_of(weights: Any, sizes: tuple[tuple[int, int], ...] = LAYERS, layers: Layers | None = None) -> Any:
    return network(weights, BertShape.of(tiny_config(sizes)), layers or TokenLayers(), [SpanHead.of(weights)])


def error(layers: Layers, weights: Any) -> float:
    """Returns how far int8 moves the logits, root mean square in spreads."""
    exact, int8 = (run(network_of(weights, layers=one), tiny_batch()) for one in (FloatLayers(), layers))
    return float(np.sqrt(np.mean((int8 - exact) ** 2)) / exact.std())


def test_evened_inputs_halve_the_error_where_a_few_are_large(tmp_path: Path) -> None:
    weights = tiny_weights()
    for name, value in weights.items():
        if name.endswith("LayerNorm.weight"):
            value[[3, 17]] *= 30
        elif name.endswith(("query.weight", "key.weight", "intermediate.dense.weight")):
            value[:, [3, 17]] /= 30
    inputs = measure_inputs(Checkpoint.load(write_tiny(tmp_path / "large", weights)))
    assert inputs.rows
    assert error(TokenLayers(inputs.largest), weights) < error(TokenLayers(), weights) / 2


def test_a_wide_feed_forward_is_summed_in_groups_of_unequal_size() -> None:
    model = network_of(tiny_weights(((4, 1000),)), ((4, 1000),))
    split = next(node for node in model.graph.node if node.output[0] == "layer.0.narrow.0.inputs")
    assert len(split.output) == 3
    assert np.isfinite(run(model, tiny_batch())).all()


def test_a_feed_forward_that_is_silent_does_no_harm() -> None:
    weights = tiny_weights(((4, 64),))
    for part in ("weight", "bias"):
        weights[f"bert.encoder.layer.0.intermediate.dense.{part}"] *= 0
    assert np.isfinite(run(network_of(weights, ((4, 64),)), tiny_batch())).all()


def test_a_rows_logits_do_not_depend_on_its_batch() -> None:
    model, both = network_of(tiny_weights()), tiny_batch(24, 17)
    alone = Batch((0,), both.input_ids[1:, :17], both.attention_mask[1:, :17], both.token_type_ids[1:, :17])
    np.testing.assert_allclose(run(model, both)[1, :17], run(model, alone)[0], atol=1e-4)


def test_two_products_of_the_largest_steps_fit_in_16_bits() -> None:
    assert 2 * 255 * COLUMN_STEPS < 2**15


def test_dynamic_int8_is_nearer_than_rounding_and_says_how_it_was_made(reader: Path, tmp_path: Path) -> None:
    verdict = quantize(reader, tmp_path / "out", check=Check(keep_failing=True))
    assert verdict.error < 0.02, "that of rounding is 0.03; a random reader's best spans are accidents"
    step = Card.load(tmp_path / "out").steps[-1]
    assert step.settings["form"] == "dynamic"
    assert "seeds" in step.settings["evened_on"]
    assert (step.verdict or {})["passed"] is verdict.passed
    assert (tmp_path / "out" / "model.onnx").stat().st_size < (reader / "model.safetensors").stat().st_size
