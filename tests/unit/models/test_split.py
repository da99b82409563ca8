"""Split readers: both ONNX networks against torch and numpy, and states in int8."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.unit import tiny
from tests.unit.tiny_models import tiny_config

pytest.importorskip("onnx", reason="needs onnx (pip install 'shardqa[models]')")

from shardqa.errors import BadModel
from shardqa.models.reader import Batch, Row, batches, join
from shardqa.models.session import Logits
from shardqa.models.split import SplitSession, packed, parts_of, unpacked
from shardqa.models.toolchain.conversion.graph import (
    BertShape,
    FloatLayers,
    Layers,
    bert_reader,
    lower_network,
    upper_network,
)
from shardqa.models.toolchain.conversion.int8 import TokenLayers
from shardqa.models.toolchain.conversion.parts import Split
from shardqa.models.toolchain.conversion.reference import Reference

LAYERS = 3
WEIGHTS = tiny.weights(LAYERS, 0)
CONFIG = tiny_config(
    ((tiny.HEADS, tiny.WIDTH),) * LAYERS,
    intermediate_size=tiny.WIDTH,
    vocab_size=tiny.VOCABULARY,
    max_position_embeddings=tiny.POSITIONS,
)


def rows() -> list[Row]:
    """Rows whose questions and passages differ in length."""
    dice = np.random.default_rng(0)
    sizes = ((3, 20), (9, 41), (17, 5), (1, 100))
    return [join(*(dice.integers(1000, 30000, size).astype(np.int32) for size in pair)) for pair in sizes]


def shape_of(cut: int) -> BertShape:
    return BertShape.of({**CONFIG, "split_layers": cut})


def session(cut: int, layers: Layers | None = None) -> SplitSession:
    written = (lower_network, upper_network)
    return SplitSession(*(one(WEIGHTS, shape_of(cut), layers or FloatLayers()).SerializeToString() for one in written))


def reference(cut: int) -> list[Logits]:
    """By the formulas, each row alone."""
    found = []
    for row in rows():
        (batch,) = batches([row])
        logits = Reference(WEIGHTS, shape_of(cut)).logits(batch)[0]
        found.append((logits[:, 0], logits[:, 1]))
    return found


def assert_alike(found: list[Logits], wanted: list[Logits], within: float = 1e-4) -> None:
    assert len(found) == len(wanted)
    for pair, other in zip(found, wanted, strict=True):
        for one, another in zip(pair, other, strict=True):
            np.testing.assert_allclose(one, another, atol=within)


@pytest.mark.parametrize("cut", [1, 2])
def test_both_networks_together_give_what_torch_gives(cut: int, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    assert_alike(session(cut).read(rows()), torch_logits(tmp_path, cut))


def torch_logits(folder: Path, cut: int) -> list[Logits]:
    """All rows in one padded batch."""
    import torch

    from shardqa.models.toolchain.training.saved import load_reader

    network = load_reader(tiny.checkpoint(folder / "checkpoint", LAYERS)).eval()
    if cut:
        network.encoder.split(Split(cut))
    found: dict[int, Logits] = {}
    for batch in batches(rows(), bucket_tokens=512):
        with torch.no_grad():
            logits = network(*(torch.from_numpy(value) for value in batch.feeds().values())).numpy()
        for line, number in enumerate(batch.rows):
            length = len(rows()[number])
            found[number] = logits[line, :length, 0], logits[line, :length, 1]
    return [found[number] for number in range(len(rows()))]


@pytest.mark.parametrize("cut", [1, 2])
def test_both_networks_together_give_what_the_formulas_give(cut: int) -> None:
    assert_alike(session(cut).read(rows()), reference(cut))


@pytest.mark.parametrize("cut", [0, 1, 2])
def test_the_network_in_one_piece_gives_what_the_formulas_give(cut: int) -> None:
    from shardqa.models.session import ReaderSession
    from shardqa.models.split import open_network

    model = bert_reader(WEIGHTS, shape_of(cut), FloatLayers()).SerializeToString()
    assert_alike(ReaderSession.of(open_network(model, 1)).read(rows()), reference(cut))


def test_no_layer_apart_gives_the_file_that_no_setting_gives() -> None:
    without = bert_reader(WEIGHTS, BertShape.of(CONFIG), FloatLayers())
    assert bert_reader(WEIGHTS, shape_of(0), FloatLayers()) == without


def test_no_layer_apart_gives_what_torch_gives_without_the_setting(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    assert_alike(torch_logits(tmp_path, 0), reference(0))


def test_apart_is_another_network_than_together() -> None:
    (start, _), (other, _) = reference(1)[0], reference(0)[0]
    assert np.abs(start - other).max() > 0.1


def test_what_is_said_of_a_passage_does_not_depend_on_the_question() -> None:
    passage = rows()[1].input_ids[rows()[1].passage].astype(np.int32)
    asked = [join(np.full(length, 2000, np.int32), passage) for length in (1, 30)]
    pair = [Batch((0,), row.input_ids[None], row.attention_mask[None], row.token_type_ids[None]) for row in asked]
    reader = Reference(WEIGHTS, replace(shape_of(2), layers=2))
    short, long = (reader.hidden(batch)[0, row.passage.start :] for batch, row in zip(pair, asked, strict=True))
    np.testing.assert_allclose(short, long, atol=1e-5)
    kept = session(2).states([parts_of(asked[0])[1]])[0]
    np.testing.assert_allclose(kept, short, atol=1e-4)


def test_int8_networks_stay_near_the_float_ones() -> None:
    largest: dict[str, np.ndarray[tuple[int], np.dtype[np.float32]]] = {}
    found, wanted = session(2, TokenLayers(largest)).read(rows()), reference(2)
    spread = np.concatenate([start for start, _ in wanted]).std()
    errors = np.concatenate([start - other for (start, _), (other, _) in zip(found, wanted, strict=True)])
    assert 0 < np.sqrt((errors**2).mean()) < 0.1 * spread


def test_packed_states_are_within_half_a_step() -> None:
    states = np.random.default_rng(0).normal(0, 1, (7, 32)).astype(np.float32)
    states[3] = 0
    steps, scale = packed(states)
    assert steps.dtype == np.int8
    assert (steps.shape, scale.shape) == ((7, 32), (7, 1))
    assert (np.abs(unpacked(steps, scale) - states) <= scale / 2 + 1e-6).all()
    assert not unpacked(steps, scale)[3].any()


@pytest.mark.parametrize("settings", [{"split_layers": 3}, {"split_layers": -1}, {"split_layers": 1.5}])
def test_a_cut_that_leaves_no_layer_together_is_refused(settings: dict[str, object]) -> None:
    with pytest.raises(BadModel, match=r"split_layers is .* from 0 to 2"):
        BertShape.of({**CONFIG, **settings})


def test_a_missing_network_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadModel, match=r"lower\.onnx can't be loaded"):
        SplitSession.load(tmp_path)
