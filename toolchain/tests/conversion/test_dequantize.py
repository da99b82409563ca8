"""From an int8 reader back to a checkpoint."""

from pathlib import Path

import numpy as np
import pytest

from shardqa.errors import BadModel
from shardqa_toolchain.conversion.checkpoint import Checkpoint
from shardqa_toolchain.conversion.dequantize import dequantize
from shardqa_toolchain.conversion.export import export
from shardqa_toolchain.conversion.int8 import COLUMN_STEPS, TABLE_STEPS
from shardqa_toolchain.conversion.quantize import quantize
from toolchain.tests.tiny_models import write_tiny


def test_every_weight_comes_back_within_half_a_step(tmp_path: Path) -> None:
    reader = write_tiny(tmp_path / "reader")
    quantize(reader, tmp_path / "int8")
    assert dequantize(tmp_path / "int8", tmp_path / "back").passed
    before, after = Checkpoint.load(reader).weights, Checkpoint.load(tmp_path / "back").weights
    assert before.keys() == after.keys()
    for name, value in before.items():
        steps = TABLE_STEPS if "embeddings" in name else COLUMN_STEPS
        # inputs that were evened out have a step each: no smaller than the largest row's
        assert np.abs(after[name] - value).max() <= 1.01 * np.abs(value).max() * 4 / steps, name


def test_a_float_reader_is_refused_with_what_can_be_taken_back(tmp_path: Path) -> None:
    export(write_tiny(tmp_path / "reader"), tmp_path / "float")
    with pytest.raises(BadModel, match=r"only readers that `shardqa-models quantize` wrote can be taken back"):
        dequantize(tmp_path / "float", tmp_path / "back")
    assert not (tmp_path / "back").exists()
