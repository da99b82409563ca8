"""The retired Python client `redisai` works unmodified: its methods run in an environment of its own.

The methods are in redisai_suite.py. The environment is made once, inside this one, from the package index.
"""

import io
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.environments import interpreter_of
from tests.nodes import Node

pytest.importorskip("onnx", reason="the model of this test is made with onnx")
from tests.onnx_models import adder

HERE = Path(__file__).parent
PACKAGES = ["redisai==1.3.0", "redis==4.6.0", "setuptools==80.9.0"]  # the last has the pkg_resources of the first


def torch_adder() -> bytes | None:
    try:
        import torch
    except ImportError:
        return None

    class Adder(torch.nn.Module):
        def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
            return a + b

    file = io.BytesIO()
    example = (torch.ones(2), torch.ones(2))
    torch.jit.save(torch.jit.trace(Adder(), example), file)  # type: ignore[no-untyped-call]
    return file.getvalue()


@pytest.fixture(scope="module")
def python() -> Path:
    return interpreter_of("redisai-client", PACKAGES, ours="none")


@pytest.mark.slow
def test_the_retired_client_works_unmodified(python: Path, start_node: Callable[..., Node], tmp_path: Path) -> None:
    node = start_node()  # of its own: the suite empties it
    (tmp_path / "adder.onnx").write_bytes(adder())
    compiled = torch_adder()
    if compiled is not None:
        (tmp_path / "adder.pt").write_bytes(compiled)
    environment = {**os.environ, "REDISAI_PORT": str(node.port), "REDISAI_MODELS": str(tmp_path)}
    words = [str(python), "-m", "pytest", "-q", "--noconftest", "-c", os.devnull, "--rootdir", str(tmp_path)]
    words += ["-p", "no:cacheprovider", str(HERE / "redisai_suite.py")]
    done = subprocess.run(words, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert " passed" in done.stdout, done.stdout[-6000:]
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
