"""Checkpoints: which are read, and what is said of those that can't be."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.numpy import save_file
from safetensors.torch import save_file as save_torch

from shardqa.errors import BadModel
from shardqa_toolchain.conversion.checkpoint import Checkpoint
from shardqa_toolchain.conversion.dequantize import dequantize
from shardqa_toolchain.conversion.export import export
from shardqa_toolchain.conversion.families import bert_settings
from shardqa_toolchain.conversion.int8 import TABLE_STEPS
from shardqa_toolchain.conversion.quantize import quantize
from toolchain.tests.tiny_models import HIDDEN, LAYERS, tiny_config, tiny_weights, write_tiny

QUERY = "bert.encoder.layer.1.attention.self.query.weight"


def test_a_folder_that_is_no_checkpoint_is_refused_with_how_to_save_one(tmp_path: Path) -> None:
    with pytest.raises(BadModel, match="is not a checkpoint"):
        Checkpoint.load(tmp_path)
    (tmp_path / "config.json").write_text(json.dumps(tiny_config()))
    with pytest.raises(BadModel, match=r"model\.safetensors is missing; save it with save_pretrained"):
        Checkpoint.load(tmp_path)


@pytest.mark.parametrize("length", [0, 4, 200, 20_000])
def test_a_file_cut_short_is_refused(tmp_path: Path, length: int) -> None:
    path = write_tiny(tmp_path) / "model.safetensors"
    path.write_bytes(path.read_bytes()[:length])
    with pytest.raises(BadModel, match=r"model\.safetensors can't be read"):
        Checkpoint.load(tmp_path)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model_type": "roberta"}, "model_type is 'roberta': BERT, DistilBERT and ELECTRA can be read"),
        ({"model_type": "t5"}, "model_type is 't5'"),
        ({"architectures": ["MPNetModel"]}, r"architectures is \['MPNetModel'\]"),
        ({"hidden_act": "relu"}, "hidden_act is 'relu', 'gelu' is needed"),
        ({"position_embedding_type": "relative_key"}, "position_embedding_type is 'relative_key'"),
        ({"is_decoder": True}, "is_decoder is True"),
        ({"model_type": "electra", "embedding_size": 16}, "embedding_size is 16 and hidden_size 32"),
        ({"num_hidden_layers": 0}, "num_hidden_layers is 0"),
        ({"num_hidden_layers": "3"}, "num_hidden_layers is '3'"),
        ({"num_hidden_layers": 2}, "more than the 2 layers"),
        ({"num_hidden_layers": 4}, r"bert\.encoder\.layer\.3\..* is missing"),
        ({"layer_norm_eps": None}, "layer_norm_eps is None"),
        ({"head_size": 7}, "a multiple of the head size 7 is needed"),
        ({"hidden_size": 48}, r"word_embeddings\.weight has shape \[1200, 32\], \['any', 48\] is needed"),
    ],
)
def test_settings_that_ask_for_something_else_are_named(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    write_tiny(tmp_path, config=tiny_config(**changes))
    with pytest.raises(BadModel, match=message):
        Checkpoint.load(tmp_path)


@pytest.mark.parametrize("content", ["", "[]", "{", "7"])
def test_settings_that_are_no_object_are_refused(tmp_path: Path, content: str) -> None:
    (write_tiny(tmp_path) / "config.json").write_text(content)
    with pytest.raises(BadModel):
        Checkpoint.load(tmp_path)


@pytest.mark.parametrize("name", ["DistilBertModel", "ElectraModel", "BertModel"])
def test_an_encoder_saved_without_a_head_is_taken(name: str) -> None:
    family = name.removesuffix("Model").lower()
    names = {"hidden_size": "dim", "num_attention_heads": "n_heads", "num_hidden_layers": "n_layers"}
    config = tiny_config(model_type=family, architectures=[name], embedding_size=HIDDEN)
    if family == "distilbert":
        config = {names.get(setting, setting): value for setting, value in config.items()}
    assert bert_settings(config)["architectures"] == ["BertModel"]


def test_an_encoder_saved_alone_is_read(tmp_path: Path) -> None:
    weights = {name.removeprefix("bert."): value for name, value in tiny_weights().items() if "qa_" not in name}
    write_tiny(tmp_path, weights, tiny_config(architectures=["BertModel"]))
    checkpoint = Checkpoint.load(tmp_path)
    assert QUERY in checkpoint.weights
    assert not checkpoint.has_span_head


@pytest.mark.parametrize("name", sorted(set(tiny_weights()) - {"qa_outputs.weight"}))
def test_a_missing_tensor_is_named(tmp_path: Path, name: str) -> None:
    weights = tiny_weights()
    del weights[name]
    with pytest.raises(BadModel, match=f"{name} is missing"):
        Checkpoint.load(write_tiny(tmp_path, weights))


@pytest.mark.parametrize("name", [name for name in sorted(tiny_weights()) if ".layer.1." in name or "LayerN" in name])
def test_a_tensor_of_another_shape_is_refused(tmp_path: Path, name: str) -> None:
    weights = tiny_weights()
    weights[name] = np.concatenate([weights[name], weights[name][:1]])
    with pytest.raises(BadModel, match="is needed"):
        Checkpoint.load(write_tiny(tmp_path, weights))


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_weight_that_is_not_finite_is_named(tmp_path: Path, value: float) -> None:
    weights = tiny_weights()
    weights[QUERY][3, 4] = value
    with pytest.raises(BadModel, match=f"{QUERY} holds NaN or infinity"):
        Checkpoint.load(write_tiny(tmp_path, weights))


def test_quantized_weights_are_refused(tmp_path: Path) -> None:
    write_tiny(tmp_path)
    header = json.dumps({"x": {"dtype": "F8_E4M3", "shape": [4], "data_offsets": [0, 4]}}).encode()
    (tmp_path / "model.safetensors").write_bytes(len(header).to_bytes(8, "little") + header + bytes(4))
    with pytest.raises(BadModel, match="x is F8_E4M3; F16, BF16, F32 or F64 is needed"):
        Checkpoint.load(tmp_path)


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64])
def test_weights_of_any_float_become_float32(tmp_path: Path, kind: type[np.floating[Any]]) -> None:
    weights = tiny_weights()
    write_tiny(tmp_path)
    save_file({name: value.astype(kind) for name, value in weights.items()}, tmp_path / "model.safetensors")
    loaded = Checkpoint.load(tmp_path).weights
    assert {value.dtype for value in loaded.values()} == {np.dtype(np.float32)}
    np.testing.assert_allclose(loaded[QUERY], weights[QUERY], rtol=1e-3)


def test_bfloat16_weights_become_float32(tmp_path: Path) -> None:
    write_tiny(tmp_path)
    halves = {name: torch.from_numpy(value).bfloat16() for name, value in tiny_weights().items()}
    save_torch(halves, tmp_path / "model.safetensors")
    loaded = Checkpoint.load(tmp_path).weights
    for name, value in halves.items():
        np.testing.assert_array_equal(loaded[name], value.float().numpy())


def test_layers_may_differ_in_size_and_numbers_of_positions_are_passed_over(tmp_path: Path) -> None:
    weights: dict[str, Any] = {**tiny_weights(), "bert.embeddings.position_ids": np.arange(64)}
    checkpoint = Checkpoint.load(write_tiny(tmp_path, weights))
    assert checkpoint.shape.layers == len(LAYERS)
    assert checkpoint.has_span_head
    assert "bert.embeddings.position_ids" not in checkpoint.weights


def test_every_table_of_an_int8_reader_comes_back_within_half_a_step(tmp_path: Path) -> None:
    reader = write_tiny(tmp_path / "reader", tiny_weights(seed=4))
    quantize(reader, tmp_path / "int8")
    assert dequantize(tmp_path / "int8", tmp_path / "back").passed
    before, after = Checkpoint.load(reader).weights, Checkpoint.load(tmp_path / "back").weights
    assert before.keys() == after.keys()
    for name in before:
        if "word_embeddings" in name:  # products' weights are rounded so that their errors make up for one another
            assert np.abs(after[name] - before[name]).max() <= 1.01 * np.abs(before[name]).max() / 2 / TABLE_STEPS


def test_a_float_reader_is_refused_with_what_can_be_taken_back(reader: Path, tmp_path: Path) -> None:
    export(reader, tmp_path / "float")
    with pytest.raises(BadModel, match=r"only readers that `shardqa-models quantize` wrote can be taken back"):
        dequantize(tmp_path / "float", tmp_path / "back")
    assert not (tmp_path / "back").exists()
