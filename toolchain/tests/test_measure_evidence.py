"""Measures of evidence lines."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from shardqa.errors import BadModel
from shardqa.models.reader import Batch
from shardqa_toolchain import evidence_lines, measure_evidence
from shardqa_toolchain.cli import app
from shardqa_toolchain.evidence_lines import EvidenceRecord
from toolchain.tests import tiny

TEXT = "One green town lies here. Two towns lie there."


class Says:
    """A network that holds the passage's first tokens for evidence."""

    def __init__(self, tokens: int) -> None:
        self.tokens = tokens

    def outputs(self, batch: Batch) -> dict[str, Any]:
        place = np.cumsum(batch.token_type_ids, axis=1)
        evidence = np.where((place >= 1) & (place <= self.tokens), 1.0, -1.0).astype(np.float32)
        return {"evidence": evidence, "relevance": batch.input_ids[:, 1].astype(np.float32)}


def lines(folder: Path) -> Path:
    path = folder / "set.jsonl.gz"
    records = [
        EvidenceRecord("yes", "which town?", "", TEXT, ((0, 25),)),
        EvidenceRecord("no", "who?", "", TEXT, ()),
        EvidenceRecord("long", "who " * 500, "", TEXT, ()),
    ]
    evidence_lines.write(path, records)
    return path


def test_words_of_shown_sentences_are_counted_over_all_texts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reader = tiny.checkpoint(tmp_path / "reader", evidence=True)
    monkeypatch.setattr(measure_evidence, "open_network", lambda folder, threads: SimpleNamespace(network=Says(6)))
    found = measure_evidence.measure(reader, lines(tmp_path))
    assert (found.words.rows, found.too_long) == (2, 1)
    # the first sentence, five words, is shown of both texts and marked in one
    assert (found.words.precision, found.words.recall, found.words.f1) == pytest.approx((50, 100, 200 / 3))
    assert found.relevance_auroc in (0, 1)


def test_the_command_measures_a_checkpoint(tmp_path: Path) -> None:
    reader = tiny.checkpoint(tmp_path / "reader", evidence=True)
    result = CliRunner().invoke(app, ["measure", str(reader), str(lines(tmp_path)), "--json"])
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["words"]["rows"] == 2


def test_a_reader_without_the_outputs_is_refused_with_the_way_out(tmp_path: Path) -> None:
    with pytest.raises(BadModel, match="gives no evidence and relevance; train them"):
        measure_evidence.measure(tiny.checkpoint(tmp_path / "reader"), lines(tmp_path))
