"""Averaging checkpoints: the mean of every tensor, and what can't be averaged."""

from pathlib import Path

import numpy as np
import pytest

from shardqa.errors import BadData, BadModel
from shardqa_toolchain import cards
from shardqa_toolchain.conversion.checkpoint import Checkpoint
from shardqa_toolchain.training.average import average
from toolchain.tests import tiny


@pytest.fixture
def pair(tmp_path: Path) -> list[Path]:
    return [tiny.checkpoint(tmp_path / name, seed=seed) for name, seed in (("one", 1), ("two", 2))]


def test_every_tensor_is_the_weighted_mean(pair: list[Path], tmp_path: Path) -> None:
    average(pair, tmp_path / "out", [1, 3])
    first, second, mean = (Checkpoint.load(folder).weights for folder in (*pair, tmp_path / "out"))
    for name, value in mean.items():
        np.testing.assert_allclose(value, 0.25 * first[name] + 0.75 * second[name], rtol=1e-4, atol=1e-6)


def test_the_card_names_what_was_averaged(pair: list[Path], tmp_path: Path) -> None:
    average(pair, tmp_path / "out")
    step = cards.Card.load(tmp_path / "out").steps[-1]
    assert (step.name, step.settings["shares"]) == ("average", [0.5, 0.5])
    assert step.settings["of"] == [cards.address(folder) for folder in pair]


def test_networks_of_different_shapes_or_tokenizers_are_refused(pair: list[Path], tmp_path: Path) -> None:
    with pytest.raises(BadModel, match="another shape"):
        average([pair[0], tiny.checkpoint(tmp_path / "small", layers=1)], tmp_path / "out")
    (pair[1] / "tokenizer.json").write_text((pair[1] / "tokenizer.json").read_text() + " ")
    with pytest.raises(BadModel, match=r"another tokenizer\.json"):
        average(pair, tmp_path / "out")


@pytest.mark.parametrize(
    ("count", "shares", "message"),
    [(2, [1.0], "shares are"), (2, [-1.0, 2.0], "shares are"), (2, [0.0, 0.0], "shares are"), (1, [], "two or more")],
)
def test_shares_that_do_not_fit_are_refused(
    pair: list[Path], count: int, shares: list[float], message: str, tmp_path: Path
) -> None:
    with pytest.raises(BadData, match=message):
        average(pair[:count], tmp_path / "out", shares)
