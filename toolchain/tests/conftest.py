"""Settings and readers of all tests of the toolchain, which run where its libraries are installed."""

import os
from importlib.util import find_spec
from pathlib import Path

import hypothesis
import pytest

NEEDED = ("torch", "transformers", "onnx", "safetensors")
collect_ignore_glob = [] if all(map(find_spec, NEEDED)) else ["*"]

# No test depends on how fast the machine is.
hypothesis.settings.register_profile("untimed", hypothesis.settings(), deadline=None)
hypothesis.settings.load_profile("untimed")
os.environ.setdefault("OMP_NUM_THREADS", "1")  # before torch comes: more threads sum in another order


@pytest.fixture(scope="session")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random reader's checkpoint whose layers differ in size; no test changes it."""
    from toolchain.tests.tiny_models import write_tiny

    return write_tiny(tmp_path_factory.mktemp("reader") / "reader")
