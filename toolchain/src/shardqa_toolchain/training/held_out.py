"""Figures of a reader on rows that it never learns from, output by output: the points of a learning curve.

These are figures to watch a run by, cheap enough for every few thousand rows; `measure.py` has a finished reader's.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from shardqa.models.evidence import sentence_means
from shardqa.models.reader import best_spans
from shardqa_toolchain.calibrate import auroc
from shardqa_toolchain.training.batches import LearningRow, collate, plan
from shardqa_toolchain.training.losses import reader_logits, reader_loss
from shardqa_toolchain.training.network import SpanReader

HELD_OUT_TOKENS = 8192  # of a batch

LINES = 64  # evidence logits that are tried as the line above which a sentence is shown

LOSS, SPAN_F1, EVIDENCE_F1, RELEVANCE_AUROC = FIGURES = ("loss", "span_f1", "evidence_f1", "relevance_auroc")


@dataclass(frozen=True, slots=True)
class HeldOutRow:
    """A row with what its figures need."""

    row: LearningRow
    passage: slice  # the passage's tokens within the row
    sentences: NDArray[np.int64]  # the number of each of these tokens' sentence, [n]
    words: NDArray[np.bool_]  # whether each begins a word, [n]
    file: str  # the name of the file that it comes from


@dataclass(frozen=True, slots=True)
class _Sentences:
    """Sentences of all rows of a file, with their logits and words."""

    logits: NDArray[np.float64]
    words: NDArray[np.float64]
    right: NDArray[np.float64]  # words that answer

    def f1(self, line: float) -> float:
        """Returns the F1 of words, 0 to 1, when sentences above the line are shown."""
        is_shown = self.logits > line
        return 2 * float(self.right[is_shown].sum()) / max(1.0, float(self.words[is_shown].sum() + self.right.sum()))


def figures(network: SpanReader, rows: Sequence[HeldOutRow], device: torch.device) -> dict[str, float]:
    """FIGURES of a reader, as far as it has the outputs and the rows have labels; nothing for no rows.

    ``loss`` is the mean over rows, in nats. ``span_f1`` is that of tokens, of rows with a span, none refused.
    ``evidence_f1`` is that of words, a mean over files, one line for all: the best; ``evidence_f1:FILE`` is a file's.
    All but the loss are 0 to 1.
    """
    losses: list[float] = []
    span_f1: list[float] = []
    relevance: list[tuple[float, bool]] = []
    files: dict[str, list[tuple[float, float, float]]] = {}
    for members in plan([len(one.row) for one in rows], HELD_OUT_TOKENS, 0, 0):
        batch = collate([rows[member].row for member in members])
        logits = reader_logits(network, batch, device)
        losses += [float(reader_loss(logits, batch, device))] * len(members)
        spans = logits.spans.float().cpu().numpy()
        for line, member in enumerate(members):
            if rows[member].row.start > 0:
                span_f1.append(_span_f1(rows[member], spans[line]))
        if logits.evidence is not None and logits.relevance is not None:
            evidence = logits.evidence.cpu().numpy()
            relevance += zip(logits.relevance.tolist(), batch.answers.tolist(), strict=True)
            for line, member in enumerate(members):
                files.setdefault(rows[member].file, []).extend(_of_sentences(rows[member], evidence[line]))
    return {
        **({LOSS: sum(losses) / len(losses)} if losses else {}),
        **({SPAN_F1: sum(span_f1) / len(span_f1)} if span_f1 else {}),
        **_evidence_f1(files),
        **_relevance_auroc(relevance),
    }


def _span_f1(held_out: HeldOutRow, spans: NDArray[np.float32]) -> float:
    best = best_spans(spans[:, 0], spans[:, 1], held_out.passage, n_best=1, sentences=held_out.sentences)[0]
    first, last = best.start_token + held_out.passage.start, best.end_token + held_out.passage.start
    common = min(last, held_out.row.end) - max(first, held_out.row.start) + 1
    return float(2 * max(0, common) / (last - first + 1 + held_out.row.end - held_out.row.start + 1))


def _of_sentences(held_out: HeldOutRow, evidence: NDArray[np.float32]) -> list[tuple[float, float, float]]:
    """Logit, words and right words of each sentence."""
    firsts = np.flatnonzero(np.diff(held_out.sentences, prepend=-1))
    logits = sentence_means(evidence[held_out.passage].astype(np.float64), firsts)
    words = np.add.reduceat(held_out.words.astype(np.float64), firsts)
    right = np.add.reduceat(
        (held_out.words & (held_out.row.evidence[held_out.passage] == 1)).astype(np.float64), firsts
    )
    return list(zip(logits.tolist(), words.tolist(), right.tolist(), strict=True))


def _evidence_f1(files: dict[str, list[tuple[float, float, float]]]) -> dict[str, float]:
    sets = {name: _Sentences(*np.array(rows, dtype=np.float64).T) for name, rows in sorted(files.items())}
    sets = {name: one for name, one in sets.items() if one.right.any()}
    if not sets:
        return {}
    lines = np.quantile(np.concatenate([one.logits for one in sets.values()]), np.linspace(0, 1, LINES)).tolist()
    best = max(lines, key=lambda line: sum(one.f1(line) for one in sets.values()))
    by_file = {f"{EVIDENCE_F1}:{name}": one.f1(best) for name, one in sets.items()}
    return {EVIDENCE_F1: sum(by_file.values()) / len(by_file), **by_file}


def _relevance_auroc(rows: Sequence[tuple[float, bool]]) -> dict[str, float]:
    logits, answers = np.array([logit for logit, _ in rows]), np.array([answer for _, answer in rows], dtype=np.bool_)
    area = auroc(logits, answers)
    return {} if area is None else {RELEVANCE_AUROC: area}
