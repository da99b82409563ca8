"""Averaging checkpoints: the mean of every tensor, and what can't be averaged."""

from pathlib import Path

import numpy as np
import pytest

from shardqa.errors import BadData, BadModel
from shardqa.models import cards
from shardqa_toolchain.conversion.checkpoint import Checkpoint
from shardqa_toolchain.training.average import average
from toolchain.tests import tiny


def test_every_tensor_is_the_weighted_mean(tmp_path: Path) -> None:
    one, two = tiny.checkpoint(tmp_path / "one", seed=1), tiny.checkpoint(tmp_path / "two", seed=2)
    average([one, two], tmp_path / "out", [1, 3])
    first, second, mean = (Checkpoint.load(folder).weights for folder in (one, two, tmp_path / "out"))
    for name, value in mean.items():
        np.testing.assert_allclose(value, 0.25 * first[name] + 0.75 * second[name], rtol=1e-4, atol=1e-6)


def test_the_card_names_what_was_averaged(tmp_path: Path) -> None:
    one, two = tiny.checkpoint(tmp_path / "one", seed=1), tiny.checkpoint(tmp_path / "two", seed=2)
    average([one, two], tmp_path / "out")
    step = cards.Card.load(tmp_path / "out").steps[-1]
    assert (step.name, step.settings["shares"]) == ("average", [0.5, 0.5])
    assert step.settings["of"] == [cards.address(one), cards.address(two)]


def test_networks_of_different_shapes_are_refused(tmp_path: Path) -> None:
    folders = [tiny.checkpoint(tmp_path / "one", layers=1), tiny.checkpoint(tmp_path / "two", layers=2)]
    with pytest.raises(BadModel, match="another shape"):
        average(folders, tmp_path / "out")


def test_different_tokenizers_are_refused(tmp_path: Path) -> None:
    one, two = tiny.checkpoint(tmp_path / "one"), tiny.checkpoint(tmp_path / "two")
    (two / "tokenizer.json").write_text((two / "tokenizer.json").read_text() + " ")
    with pytest.raises(BadModel, match=r"another tokenizer\.json"):
        average([one, two], tmp_path / "out")


@pytest.mark.parametrize("shares", [[1.0], [-1.0, 2.0], [0.0, 0.0]])
def test_shares_that_do_not_fit_are_refused(shares: list[float], tmp_path: Path) -> None:
    one, two = tiny.checkpoint(tmp_path / "one"), tiny.checkpoint(tmp_path / "two")
    with pytest.raises(BadData, match="shares are"):
        average([one, two], tmp_path / "out", shares)


def test_one_checkpoint_is_no_mean(tmp_path: Path) -> None:
    with pytest.raises(BadData, match="two or more"):
        average([tiny.checkpoint(tmp_path / "one")], tmp_path / "out")
