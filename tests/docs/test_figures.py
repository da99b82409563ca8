"""Figures of answers name the network and the scores they were measured with: who ships others measures again."""

import json
import re
from pathlib import Path

import pytest

from shardqa.models import shipped

ROOT = Path(__file__).parents[2]
MEASURED = re.compile(r"`(reader-[\w.-]+-[0-9a-f]{8})`[^.]*?\bscores\s+`([0-9a-f]{8})`")


@pytest.mark.parametrize("page", ["README.md", "docs/benchmarks.md"])
def test_figures_are_those_of_what_is_shipped(page: str) -> None:
    digests = json.loads((shipped.folder() / shipped.CHECKSUMS_FILE).read_text())
    own = (shipped.NAME, digests["scoring.json"][:8])
    assert shipped.NAME.endswith(digests["model.onnx"][:8])
    assert MEASURED.findall((ROOT / page).read_text()) == [own], "measure again by bench/evals.py, then name these"
