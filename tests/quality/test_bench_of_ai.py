"""`bench/ai.py` runs, as small as it goes, and prints its figures; people look at them."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SMALL = {"ROUNDS": "1", "RUNS": "4", "LAYERS": "2", "NODES": "2"}


@pytest.mark.parametrize(
    ("figures", "lines"),
    [
        ("tensors graph", ["AI.TENSORGET BLOB against GET", "AI.DAGEXECUTE of 3 operations"]),
        ("throughput batching2", ["AI.MODELEXECUTE, 16 connections", "8 requests of 20 to 200 tokens"]),
        ("memory", ["files: 1 while stored, 0 after the last key was deleted"]),
    ],
)
def test_the_bench_of_models_prints_its_figures(figures: str, lines: list[str]) -> None:
    pytest.importorskip("onnx", reason="the bench makes its large model with onnx")
    words = [sys.executable, str(ROOT / "bench" / "ai.py")]
    environment = {**os.environ, **SMALL, "FIGURES": figures}
    done = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr[-3000:]
    assert not [words for words in lines if words not in done.stdout], done.stdout
