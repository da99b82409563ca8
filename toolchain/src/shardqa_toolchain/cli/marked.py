"""Rows for `calibrate-evidence`: the sentences of texts as a reader scores them, with those that people marked."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from shardqa.engine.parts import Excerpt
from shardqa_toolchain.cli.marked_texts import MarkedTexts, sentences, spread
from shardqa_toolchain.evidence_calibration import MarkedRow
from shardqa_toolchain.evidence_lines import EvidenceRecord
from shardqa_toolchain.evidence_metrics import counted


def rows(texts: MarkedTexts, file: Path, split_name: str | None, limit: int) -> list[MarkedRow]:
    """Returns ``limit`` rows of a file, evenly spread, for `evidence_calibration`; raises BadData."""
    records = spread(file, split_name, limit)
    replies = texts.read(records, file.name)
    return [_marked(record, sentences(reply)) for record, reply in zip(records, replies, strict=True)]


def _marked(record: EvidenceRecord, excerpts: Sequence[Excerpt]) -> MarkedRow:
    each = [counted(record.context, [(one.start, one.end)], record.spans) for one in excerpts]
    return MarkedRow(
        np.array([one.margin for one in excerpts]),
        np.array([(one.evidence, one.relevance) for one in excerpts]).reshape(-1, 2),
        np.array([one.predicted_words for one in each], np.int64),
        np.array([one.true_words for one in each], np.int64),
        counted(record.context, [], record.spans).marked_words,
    )
