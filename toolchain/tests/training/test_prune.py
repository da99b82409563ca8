"""Pruning: what goes, what stays, and that nothing changes where nothing goes."""

import json
from pathlib import Path

import pytest
import torch

from shardqa.errors import BadData
from shardqa_toolchain.conversion.export import export
from shardqa_toolchain.training import prune
from shardqa_toolchain.training.network import SpanReader
from shardqa_toolchain.training.saved import load_reader
from toolchain.tests import tiny


def logits(reader: SpanReader) -> torch.Tensor:
    ids = torch.arange(1000, 1012).reshape(2, 6)
    with torch.no_grad():
        outputs: torch.Tensor = reader.eval()(ids, torch.ones_like(ids), torch.zeros_like(ids))
    return outputs


@pytest.fixture
def reader(tmp_path: Path) -> SpanReader:
    return load_reader(tiny.checkpoint(tmp_path / "t", evidence=True))


def test_keeping_everything_changes_nothing(reader: SpanReader) -> None:
    layers = reader.encoder.sizes.layers
    whole = [prune.LayerParts(tuple(range(size.heads)), tuple(range(size.width))) for size in layers]
    assert torch.equal(logits(prune.slimmed(reader, whole)), logits(reader))


def test_columns_and_heads_that_feed_nothing_go_first_and_change_nothing(reader: SpanReader) -> None:
    with torch.no_grad():
        reader.get_parameter("encoder.layers.1.mix.weight")[:, 8:16] = 0
        for number in range(2):
            reader.get_parameter(f"encoder.layers.{number}.narrow.weight")[:, :16] = 0
    layers = prune.chosen(prune._importance(reader, []), 1 / 8, 1 / 3)
    assert [layer.columns for layer in layers] == [tuple(range(16, 48))] * 2
    assert [layer.heads for layer in layers] == [(0, 1, 2, 3), (0, 2, 3)]
    assert torch.allclose(logits(prune.slimmed(reader, layers)), logits(reader), atol=1e-5)


def test_a_pruned_checkpoint_has_its_unequal_layers_and_converts(tmp_path: Path) -> None:
    sample = tiny.question_set(tmp_path / "set.json")
    pruned = prune.prune_structures(tiny.checkpoint(tmp_path / "t"), tmp_path / "out", 0.5, 0.3, [sample], rows=4)
    again = load_reader(tmp_path / "out")
    assert tuple((size.heads, size.width) for size in again.encoder.sizes.layers) == pruned.layers
    assert sum(heads for heads, _ in pruned.layers) == 4
    assert pruned.parameters_after < pruned.parameters_before
    assert export(tmp_path / "out", tmp_path / "exact").passed


def test_the_report_has_f1_and_time_of_each_share_of_zeros(tmp_path: Path) -> None:
    words = [tiny.checkpoint(tmp_path / "t"), "--out", tmp_path / "out", "--weights", 0.5, "--limit", 2, "--json"]
    done = tiny.command("prune", *words, "--questions", tiny.question_set(tmp_path / "set.json"))
    pruned = json.loads(done.stdout)
    assert pruned["zeros"] == prune.zeros(load_reader(tmp_path / "out")) == 0.5
    assert [round(point["zeros"], 1) for point in pruned["report"]] == [0, 0.1, 0.3, 0.5, 0.7, 0.9]
    assert all(point["milliseconds"] > 0 and 0 <= point["f1"] <= 100 for point in pruned["report"])


@pytest.mark.parametrize("words", [["--heads", "1"], ["--weights", "-1"], [], ["--weights", "0.5", "--heads", "0.5"]])
def test_shares_that_can_not_be_are_refused(tmp_path: Path, words: list[str]) -> None:
    with pytest.raises(BadData, match=r"below 1 is needed|either --weights"):
        tiny.command("prune", tiny.checkpoint(tmp_path / "t"), "--out", tmp_path / "out", *words)
