"""The graph that is written from weights computes what the papers' formulas and transformers compute."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
import torch
import transformers
from hypothesis import given, settings
from hypothesis import strategies as st

from shardqa.errors import BadModel
from shardqa.models.reader import Batch
from shardqa_toolchain.conversion.builder import Output
from shardqa_toolchain.conversion.checkpoint import Checkpoint
from shardqa_toolchain.conversion.graph import BertShape, FloatLayers, Head, SpanHead, network
from shardqa_toolchain.conversion.reference import Reference, gelu
from toolchain.tests.tiny_models import (
    HEAD_SIZE,
    HIDDEN,
    LAYERS,
    POSITIONS,
    VOCABULARY,
    tiny_batch,
    tiny_config,
    tiny_weights,
)

SPANS = ["start_logits", "end_logits"]


def run(model: Any, batch: Batch, outputs: Sequence[str] = SPANS) -> list[Any]:
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return list(session.run(outputs, batch.feeds()))


def spans_of(weights: Any, batch: Batch) -> Any:
    """Logits of the float graph, [rows, tokens, 2]."""
    shape = BertShape.of(tiny_config([(0, 0)] * sum("query.weight" in name for name in weights)))
    return np.stack(run(network(weights, shape, FloatLayers(), [SpanHead.of(weights)]), batch), axis=-1)


@settings(max_examples=25)
@given(st.lists(st.tuples(st.integers(1, 5), st.integers(1, 70)), min_size=1, max_size=3), st.integers(0, 9))
def test_the_graph_equals_the_reference_whatever_the_sizes_of_its_layers(
    layers: list[tuple[int, int]], seed: int
) -> None:
    weights, batch = tiny_weights(layers, seed), tiny_batch()
    wanted = Reference(weights, BertShape.of(tiny_config(layers))).logits(batch)
    real = batch.attention_mask == 1
    np.testing.assert_allclose(spans_of(weights, batch)[real], wanted[real], atol=2e-4)


@pytest.mark.parametrize("tokens", [1, 9, POSITIONS])
def test_rows_of_any_length_are_read(tokens: int) -> None:
    assert spans_of(tiny_weights(), tiny_batch(tokens, tokens)).shape == (2, tokens, 2)


def test_a_checkpoint_without_a_span_head_is_no_reader() -> None:
    weights = {name: value for name, value in tiny_weights().items() if not name.startswith("qa_outputs")}
    with pytest.raises(BadModel, match="no span head"):
        network(weights, BertShape.of(tiny_config()), FloatLayers(), [SpanHead.of(weights)])


class LastHidden:
    """A head that gives the encoder's output itself."""

    def write(self, graph: Any, hidden: str) -> list[Output]:
        graph.node("Identity", [hidden], "last_hidden")
        return [Output("last_hidden", ("batch", "sequence", HIDDEN))]


def test_one_encoder_carries_several_heads() -> None:
    weights = tiny_weights()
    heads: list[Head] = [SpanHead.of(weights), LastHidden()]
    model = network(weights, BertShape.of(tiny_config()), FloatLayers(), heads)
    batch = tiny_batch()
    *spans, hidden = run(model, batch, [*SPANS, "last_hidden"])
    again = hidden @ weights["qa_outputs.weight"].T + weights["qa_outputs.bias"]
    np.testing.assert_allclose(np.stack(spans, axis=-1), again, atol=1e-4)


def test_an_observed_graph_gives_the_input_of_every_product() -> None:
    weights = tiny_weights()
    model = network(weights, BertShape.of(tiny_config()), FloatLayers(), [SpanHead.of(weights)], observe=True)
    names = [output.name for output in model.graph.output]
    products = [f"?layer.{number}.{part}" for number in range(3) for part in ("qkv", "mix", "widen", "narrow")]
    assert names == SPANS + products
    widths = [value.shape[-1] for value in run(model, tiny_batch(), products)]
    sizes = [(HIDDEN, heads * HEAD_SIZE, HIDDEN, width) for heads, width in LAYERS]
    assert widths == [width for layer in sizes for width in layer]


def test_gelu_is_the_normal_distributions() -> None:
    special = pytest.importorskip("scipy.special", reason="needs scipy")
    values = np.linspace(-12, 12, 9_999, dtype=np.float32)
    np.testing.assert_allclose(gelu(values), values * special.ndtr(values), atol=2e-6)


TWO_LAYERS = {"intermediate_size": 48, "num_hidden_layers": 2, "hidden_size": HIDDEN, "num_attention_heads": 4}
FAMILIES: dict[str, dict[str, Any]] = {
    "Bert": TWO_LAYERS,
    "Electra": {**TWO_LAYERS, "embedding_size": HIDDEN},
    "DistilBert": {"hidden_dim": 48, "n_layers": 2, "dim": HIDDEN, "n_heads": 4},
}


@pytest.mark.parametrize("family", FAMILIES)
def test_the_graph_and_the_reference_equal_transformers(family: str, tmp_path: Path) -> None:
    torch.manual_seed(3)
    config = getattr(transformers, f"{family}Config")(**FAMILIES[family], vocab_size=VOCABULARY, initializer_range=0.3)
    bert = getattr(transformers, f"{family}ForQuestionAnswering")(config).eval()
    bert.save_pretrained(tmp_path)
    batch = tiny_batch()
    feeds = {name: torch.from_numpy(value) for name, value in batch.feeds().items()}
    if family == "DistilBert":
        del feeds["token_type_ids"]
    with torch.no_grad():
        outputs = bert(**feeds)
    exact = np.stack([outputs.start_logits.numpy(), outputs.end_logits.numpy()], axis=-1)
    checkpoint = Checkpoint.load(tmp_path)
    real = batch.attention_mask == 1
    reference = Reference(checkpoint.weights, checkpoint.shape).logits(batch)
    np.testing.assert_allclose(reference[real], exact[real], atol=1e-4)
    np.testing.assert_allclose(spans_of(checkpoint.weights, batch)[real], exact[real], atol=1e-4)
