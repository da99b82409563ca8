"""What each cut of a reader costs and saves: F1 with question and passage apart in its lowest layers, and time.

A cut is measured on the weights as they are. A reader that was not trained for it loses much: the one that was trained
is the one to look at, the others tell how far apart its layers could be taken.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import onnx

from shardqa.errors import BadData
from shardqa.models.reader import Row, join
from shardqa.models.session import Logits, ReaderSession
from shardqa.models.split import SplitSession, open_network, packed, parts_of, unpacked
from shardqa.models.toolchain import measure
from shardqa.models.toolchain.conversion.checkpoint import Checkpoint
from shardqa.models.toolchain.conversion.graph import (
    FloatLayers,
    Layers,
    bert_reader,
    lower_network,
    upper_network,
)
from shardqa.models.toolchain.conversion.int8 import TokenLayers
from shardqa.models.toolchain.conversion.parts import TOGETHER, Split
from shardqa.models.toolchain.conversion.ranges import measure_largest

FORMS = ("int8", "float")

PASSAGES = (96, 112, 128, 128, 160)
"""Tokens of the passages of the question that is timed: five, as an answer reads them."""

QUESTION_TOKENS = 12

ROUNDS = 15
"""Of which the median counts; the full reader, both networks and the upper one take turns."""


@dataclass(frozen=True, slots=True)
class CutScore:
    """One cut."""

    layers: int
    """Apart; 0 is the reader in one piece."""
    is_trained: bool
    """Whether the checkpoint was trained for this very cut."""
    f1: float
    """Percent."""
    kept_f1: float | None
    """The same when passages' states were kept in int8."""
    full_ms: float
    """One question's five passages with all layers together, in the same rounds."""
    both_ms: float | None
    """Both networks, nothing kept."""
    warm_ms: float | None
    """The question's part of the lower network and the upper one, passages' states at hand."""
    state_bytes: int
    """Of one token in int8, its scale included."""


@dataclass(frozen=True, slots=True)
class Measuring:
    """What cuts are measured on."""

    questions: Path
    """SQuAD file."""
    limit: int | None
    threads: int
    form: str
    """Of the networks, one of FORMS."""


def cuts(folder: Path, wanted: Sequence[int] | None, settings: Measuring) -> Iterator[CutScore]:
    """Measure each cut in turn, all unless given, 0 for the reader in one piece; raises BadModel, BadData."""
    if settings.form not in FORMS:
        raise BadData(f"form is {settings.form!r}, {' or '.join(FORMS)} is needed")
    checkpoint = Checkpoint.load(folder)
    layers = checkpoint.shape.layers
    wanted = range(layers) if wanted is None else wanted
    for cut in wanted:
        if not 0 <= cut < layers:
            raise BadData(f"cut is {cut}, 0 to {layers - 1} is needed: the reader has {layers} layers")
    readings = measure.readings(folder, settings.questions, settings.limit)
    for cut in wanted:
        yield _measured(checkpoint, cut, readings, settings)


def _measured(
    checkpoint: Checkpoint, cut: int, readings: Sequence[measure.QuestionRows], settings: Measuring
) -> CutScore:
    shape = checkpoint.shape
    split = Split(cut, shape.split.passage_place)
    cutting = replace(checkpoint, shape=replace(shape, split=split))
    whole = _whole(replace(checkpoint, shape=replace(shape, split=TOGETHER)), settings)
    is_trained = cut == shape.split.layers
    token_bytes = len(checkpoint.weights["bert.embeddings.LayerNorm.weight"]) + np.dtype(np.float32).itemsize
    if not cut:
        (full,) = _times([lambda: whole(timed_rows())])
        return CutScore(0, is_trained, _f1(readings, whole), None, full, None, None, 0)
    session = _session(cutting, settings)
    rows = timed_rows()
    parts = [parts_of(row) for row in rows]
    kept = session.states([passage for _, passage in parts])

    def warm() -> list[Logits]:
        asked = session.states([parts[0][0]])
        return session.read_kept(rows, asked * len(rows), kept)

    full, both, upper = _times([lambda: whole(rows), lambda: session.read(rows), warm])
    scores = _f1(readings, session.read), _f1(readings, lambda asked: read_packed(session, asked))
    return CutScore(cut, is_trained, *scores, full, both, upper, token_bytes)


def read_packed(session: SplitSession, rows: Sequence[Row]) -> list[Logits]:
    """As `SplitSession.read`, of passages whose states were kept in int8."""
    pairs = [parts_of(row) for row in rows]
    kept = [unpacked(*packed(states)) for states in session.states([passage for _, passage in pairs])]
    return session.read_kept(rows, session.states([question for question, _ in pairs]), kept)


def timed_rows() -> list[Row]:
    """One question with five passages; which words they are does not change the time."""
    words = np.arange(1_000, 1_000 + max(PASSAGES), dtype=np.int32)
    return [join(words[:QUESTION_TOKENS], words[:tokens]) for tokens in PASSAGES]


def _layers(checkpoint: Checkpoint, form: str) -> Layers:
    return TokenLayers(measure_largest(checkpoint)[0]) if form == "int8" else FloatLayers()


def _session(checkpoint: Checkpoint, settings: Measuring) -> SplitSession:
    layers, weights, shape = _layers(checkpoint, settings.form), checkpoint.weights, checkpoint.shape
    lower, upper = (written(weights, shape, layers) for written in (lower_network, upper_network))
    return SplitSession(_content(lower), _content(upper), settings.threads)


def _whole(checkpoint: Checkpoint, settings: Measuring) -> Callable[[Sequence[Row]], list[Logits]]:
    model = bert_reader(checkpoint.weights, checkpoint.shape, _layers(checkpoint, settings.form))
    return ReaderSession.of(open_network(_content(model), settings.threads)).read


def _content(model: onnx.ModelProto) -> bytes:
    content: bytes = model.SerializeToString()
    return content


def _f1(readings: Sequence[measure.QuestionRows], read: Callable[[Sequence[Row]], list[Logits]]) -> float:
    return measure.scores(list(measure.read_with(read, readings))).f1


def _times(runs: Sequence[Callable[[], object]]) -> list[float]:
    """The median milliseconds of each, all in turn."""
    times: list[list[float]] = [[] for _ in runs]
    for _ in range(ROUNDS):
        for run, taken in zip(runs, times, strict=True):
            began = time.perf_counter()
            run()
            taken.append(1000 * (time.perf_counter() - began))
    return [statistics.median(one) for one in times]
