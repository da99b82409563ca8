"""Pruning: what goes, what stays, and that nothing changes where nothing goes."""

import json
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from shardqa.errors import BadData
from shardqa_toolchain import cards
from shardqa_toolchain.training import prune
from shardqa_toolchain.training.network import SpanReader
from shardqa_toolchain.training.saved import load_reader
from shardqa_toolchain.training.slimming import KeptLayer, slimmed
from toolchain.tests import tiny


def logits(reader: SpanReader) -> torch.Tensor:
    ids = torch.arange(1000, 1012).reshape(2, 6)
    with torch.no_grad():
        outputs: torch.Tensor = reader.eval()(ids, torch.ones_like(ids), torch.zeros_like(ids))
    return outputs


@pytest.fixture
def reader(tmp_path: Path) -> SpanReader:
    return load_reader(tiny.checkpoint(tmp_path / "t"))


def test_keeping_everything_changes_nothing(reader: SpanReader) -> None:
    layers = reader.encoder.sizes.layers
    whole = [KeptLayer(n, tuple(range(size.heads)), tuple(range(size.width))) for n, size in enumerate(layers)]
    assert torch.equal(logits(slimmed(reader, whole)), logits(reader))


def test_removing_a_column_that_is_zero_changes_nothing(reader: SpanReader) -> None:
    with torch.no_grad():
        for number in range(2):
            reader.get_parameter(f"encoder.layers.{number}.narrow.weight")[:, :16] = 0
    layers = prune.chosen(prune._importance(reader, []), 0.0, 1 / 3)
    assert [layer.columns for layer in layers] == [tuple(range(16, 48))] * 2
    assert torch.allclose(logits(slimmed(reader, layers)), logits(reader), atol=1e-5)


def test_a_head_that_feeds_nothing_goes_first(reader: SpanReader) -> None:
    with torch.no_grad():
        reader.get_parameter("encoder.layers.1.mix.weight")[:, 8:16] = 0
    layers = prune.chosen(prune._importance(reader, []), 1 / 8, 0.0)
    assert [layer.heads for layer in layers] == [(0, 1, 2, 3), (0, 2, 3)]
    assert torch.allclose(logits(slimmed(reader, layers)), logits(reader), atol=1e-5)


def test_a_pruned_checkpoint_loads_again_with_its_unequal_layers(tmp_path: Path) -> None:
    found = prune.prune_structures(tiny.checkpoint(tmp_path / "t"), tmp_path / "out", 0.5, 0.3)
    again = load_reader(tmp_path / "out")
    assert tuple((size.heads, size.width) for size in again.encoder.sizes.layers) == found.layers
    assert found.parameters_after < found.parameters_before
    assert cards.Card.load(tmp_path / "out").steps[-1].name == "prune"


def test_importance_is_measured_on_questions(tmp_path: Path) -> None:
    sample = tiny.question_set(tmp_path / "set.json")
    found = prune.prune_structures(tiny.checkpoint(tmp_path / "t"), tmp_path / "out", 0.25, 0.0, [sample], rows=4)
    assert sum(heads for heads, _ in found.layers) == 6


@given(st.floats(0, 0.99), st.floats(0, 0.99), st.integers(0, 99))
def test_every_layer_keeps_a_head_and_some_columns(heads: float, columns: float, seed: int) -> None:
    random = torch.Generator().manual_seed(seed)
    scores = [
        prune.Importance(torch.rand(4, generator=random), torch.rand(96, generator=random) * (1 + number))
        for number in range(3)
    ]
    for one in prune.chosen(scores, heads, columns):
        assert 1 <= len(one.heads) <= 4
        assert len(one.columns) in (32, 64, 96)


@given(st.floats(0, 0.95))
def test_the_share_of_zeros_is_the_one_asked_for(share: float) -> None:
    value = torch.randn(20, 30, generator=torch.Generator().manual_seed(0))
    prune._zero_smallest(value, share)
    assert int((value == 0).sum()) == int(share * 600)


def test_zeroed_weights_are_reported_by_matrix(tmp_path: Path) -> None:
    found = prune.prune_weights(tiny.checkpoint(tmp_path / "t"), tmp_path / "out", 0.5)
    assert set(found.sparsity.values()) == {0.5}
    assert len(found.sparsity) == 2 * 4


@pytest.mark.parametrize("share", [-0.1, 1.0, 2.0])
def test_a_share_out_of_range_is_refused(share: float, tmp_path: Path) -> None:
    with pytest.raises(BadData, match=r"0 or more and below 1"):
        prune.prune_structures(tiny.checkpoint(tmp_path / "t"), tmp_path / "out", share, 0.0)


def test_the_command_prints_what_is_left_and_wants_one_kind_of_pruning(tmp_path: Path) -> None:
    words = ["prune", tiny.checkpoint(tmp_path / "t"), "--out", tmp_path / "out"]
    result = tiny.command(*words, "--heads", "0.5", "--json")
    assert sum(heads for heads, _ in json.loads(result.stdout)["layers"]) == 4
    with pytest.raises(BadData, match="nothing to remove"):
        tiny.command(*words)
    with pytest.raises(BadData, match="give one kind"):
        tiny.command(*words, "--weights", "0.5", "--heads", "0.5")
