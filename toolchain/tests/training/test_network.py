"""The torch network: transformers' numbers, transformers' names, and layers of unequal size."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers

from shardqa.errors import BadModel
from shardqa_toolchain.conversion.checkpoint import Checkpoint
from shardqa_toolchain.training import network
from shardqa_toolchain.training.saved import load_reader, write_checkpoint
from toolchain.tests import tiny


def inputs() -> tuple[Any, Any, Any]:
    ids = torch.tensor([[101, 2054, 102, 7592, 2088, 102], [101, 2054, 102, 7592, 102, 0]])
    mask = torch.tensor([[1, 1, 1, 1, 1, 1], [1, 1, 1, 1, 1, 0]])
    types = torch.tensor([[0, 0, 0, 1, 1, 1], [0, 0, 0, 1, 1, 0]])
    return ids, mask, types


def test_it_gives_the_logits_that_transformers_gives(tmp_path: Path) -> None:
    folder = tiny.checkpoint(tmp_path / "tiny")
    theirs: Any = transformers.BertForQuestionAnswering.from_pretrained(folder, attn_implementation="eager")
    ids, mask, types = inputs()
    with torch.no_grad():
        ours = load_reader(folder).eval()(ids, mask, types)
        exact = theirs.eval()(input_ids=ids, attention_mask=mask, token_type_ids=types)
    real = mask.bool()
    np.testing.assert_allclose(ours[..., 0][real], exact.start_logits[real], atol=2e-5)
    np.testing.assert_allclose(ours[..., 1][real], exact.end_logits[real], atol=2e-5)


def test_padding_changes_nothing(tmp_path: Path) -> None:
    ours = load_reader(tiny.checkpoint(tmp_path / "tiny")).eval()
    ids, mask, types = inputs()
    with torch.no_grad():
        padded = ours(ids, mask, types)[1, :5]
        alone = ours(ids[1:, :5], mask[1:, :5], types[1:, :5])[0]
    np.testing.assert_allclose(padded, alone, atol=1e-5)


def test_writing_and_loading_a_checkpoint_gives_the_same_tensors(tmp_path: Path) -> None:
    folder, copy = tiny.checkpoint(tmp_path / "tiny"), tmp_path / "copy"
    copy.mkdir()
    write_checkpoint(load_reader(folder), folder, copy)
    start, again = Checkpoint.load(folder), Checkpoint.load(copy)
    assert set(again.weights) == set(start.weights)
    for name, value in again.weights.items():
        np.testing.assert_array_equal(value, start.weights[name])


def test_layers_may_differ_in_size(tmp_path: Path) -> None:
    sizes = network.Sizes(100, 16, 2, 32, 8, (network.LayerSize(1, 5), network.LayerSize(4, 48)))
    found = network.SpanReader(sizes)
    ids = torch.randint(0, 100, (2, 7))
    assert found(ids, torch.ones_like(ids), torch.zeros_like(ids)).shape == (2, 7, 2)


def test_a_tensor_that_is_missing_or_of_another_shape_is_named(tmp_path: Path) -> None:
    weights, name = tiny.weights(2, 0), "bert.encoder.layer.1.output.dense.bias"
    sizes = network.Sizes.of(json.loads((tiny.checkpoint(tmp_path / "t") / "config.json").read_text()), weights)
    weights[name] = np.zeros(7, dtype=np.float32)
    with pytest.raises(BadModel, match=r"narrow\.bias has shape \[7\], \[32\] is needed"):
        network.load_encoder(network.Encoder(sizes), weights)
    del weights[name]
    with pytest.raises(BadModel, match=r"layer\.1\.output\.dense\.bias"):
        network.load_encoder(network.Encoder(sizes), weights)
