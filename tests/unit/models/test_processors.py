"""The shipped reader computes the same on every processor: shards of one cluster need not be alike."""

import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("onnx", reason="needs onnx (pip install './toolchain[train]')")

from tests.unit.models import processors

QEMU = "qemu-x86_64"
AVX2_ONLY = "Haswell-noTSX,-pcid,-x2apic,-tsc-deadline,-invpcid"  # less what QEMU would only warn of
LARGEST_INT16 = 2**15 - 1


def test_no_two_products_together_leave_16_bits() -> None:
    """The instruction vpmaddubsw, for processors without VNNI, adds neighbours in 16 bits and saturates."""
    sizes = {name: np.abs(weight.astype(np.int64)) for name, weight in processors.weights().items()}
    worst = {name: 255 * int((size[0::2] + size[1::2]).max()) for name, size in sizes.items()}
    assert {name: sums for name, sums in worst.items() if sums > LARGEST_INT16} == {}


def test_the_integer_products_of_this_processor_are_numpys_bit_for_bit() -> None:
    assert processors.wrong_sums() == 0


@pytest.mark.timeout(900)  # emulated, it takes a minute alone
def test_a_processor_with_avx2_alone_gives_the_same_sums_and_the_same_logits(tmp_path: Path) -> None:
    if not shutil.which(QEMU):
        pytest.skip(f"{QEMU} is missing; Debian's package is qemu-user")
    out = tmp_path / "emulated.npz"
    command = [QEMU, "-cpu", AVX2_ONLY, sys.executable, "-m", "tests.unit.models.processors", str(out)]
    done = subprocess.run(command, cwd=processors.ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    emulated = np.load(out)
    if not emulated["avx2"]:
        pytest.skip(f"this {QEMU} does not emulate AVX2; 7.2 and newer do")
    assert not emulated["avx512"]
    assert emulated["wrong"] == 0
    np.testing.assert_array_equal(emulated["logits"], processors.logits())
