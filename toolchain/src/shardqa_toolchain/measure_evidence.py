"""Measures of a reader's evidence and relevance, given a text: word precision, recall and F1, and AUROC.

    shardqa-models measure my-reader-int8 set.jsonl.gz

A sentence is shown where the mean evidence of its tokens says that it rather answers than not. What people are shown
goes through more: `shardqa-models measure-evidence` measures that.
"""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from shardqa.errors import BadData, BadModel, QuestionTooLong
from shardqa.models.evidence import sentence_means
from shardqa.models.reader import EVIDENCE, RELEVANCE, Row, batches
from shardqa.models.tokenizer import PassageTokens, Tokenizer
from shardqa_toolchain import evidence_lines
from shardqa_toolchain.calibrate import auroc
from shardqa_toolchain.conversion.checkpoint import EVIDENCE_HEADS
from shardqa_toolchain.conversion.networks import Network, open_network
from shardqa_toolchain.evidence_metrics import EvidenceCounts, EvidenceScores, Extent, counted, summed
from shardqa_toolchain.training.examples import TextUnits
from shardqa_toolchain.windows import windows


@dataclass(frozen=True, slots=True)
class SentenceScores:
    """A reader's result on a set of questions with marked sentences."""

    words: EvidenceScores  # of the sentences shown, over all texts; percent
    too_long: int  # questions that the reader does not take, left out
    # The chance that a text that answers has the higher relevance, 0 to 1; None where all do, or none.
    relevance_auroc: float | None


def measure(folder: Path, file: Path, limit: int | None = None, threads: int = 1) -> SentenceScores:
    """Read ``limit`` records drawn at random (all unless given).

    Raises BadData for a file without questions that can be read, BadModel for a reader without these outputs.
    """
    records = evidence_lines.read(file)
    if limit is not None and limit < len(records):
        records = random.Random(0).sample(records, limit)
    tokenizer, network = Tokenizer.load(folder), open_network(folder, threads).network
    counts: list[EvidenceCounts] = []
    relevance: list[float] = []
    answers: list[bool] = []
    for record in records:
        try:
            question = tokenizer.question(record.question)
        except QuestionTooLong:
            continue
        tokens = tokenizer.passage(record.context)
        evidence, surest = _read(network, folder, [*windows(question, tokens.ids)], len(tokens))
        counts.append(counted(record.context, _shown(record.context, tokens, evidence), record.spans))
        relevance.append(surest)
        answers.append(bool(record.spans))
    if not counts:
        raise BadData(f"{file} has no question that the reader can take")
    area = auroc(np.array(relevance), np.array(answers))
    return SentenceScores(summed(counts), len(records) - len(counts), area)


def _read(
    network: Network, folder: Path, rows: Sequence[tuple[int, Row]], tokens: int
) -> tuple[NDArray[np.float64], float]:
    """The evidence of each of the passage's tokens, a mean over windows, and the relevance of the surest window."""
    total, count = np.zeros(tokens), np.zeros(tokens)
    relevance = -np.inf
    for number, evidence, sureness in _outputs(network, folder, [row for _, row in rows]):
        first, row = rows[number]
        place = slice(first, first + row.passage.stop - row.passage.start)
        total[place] += evidence[row.passage]
        count[place] += 1
        relevance = max(relevance, sureness)
    return total / count, relevance


def _outputs(network: Network, folder: Path, rows: Sequence[Row]) -> Iterator[tuple[int, NDArray[np.float32], float]]:
    for batch in batches(rows):
        outputs = network.outputs(batch)
        if not all(name in outputs for name in EVIDENCE_HEADS):
            raise BadModel(f"{folder} gives no {EVIDENCE} and {RELEVANCE}; train them: `evidence = true` in a recipe")
        for line, number in enumerate(batch.rows):
            yield number, outputs[EVIDENCE][line], float(outputs[RELEVANCE][line])


def _shown(text: str, tokens: PassageTokens, evidence: NDArray[np.float64]) -> list[Extent]:
    """The sentences whose mean evidence is above even odds."""
    if not len(tokens):
        return []
    numbers = TextUnits.of(text, tokens.offsets).sentences
    firsts = np.flatnonzero(np.diff(numbers, prepend=-1))
    lasts = np.append(firsts[1:], len(tokens)) - 1
    means = sentence_means(evidence, firsts)
    edges = zip(tokens.offsets[firsts, 0].tolist(), tokens.offsets[lasts, 1].tolist(), strict=True)
    return [edge for edge, mean in zip(edges, means.tolist(), strict=True) if mean > 0]
