"""Whether two networks answer alike: same inputs through both, and a verdict by thresholds.

Run after every conversion. A checkpoint is computed in numpy (`reference.py`), so that nothing the conversion uses
vouches for itself.
"""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shardqa.errors import BadModel
from shardqa.models.reader import SPANS, Batch, Row, batches, best_spans
from shardqa.models.shipped import sha256
from shardqa_toolchain import measure
from shardqa_toolchain.conversion.checkpoint import EVIDENCE_HEADS
from shardqa_toolchain.conversion.networks import OpenNetwork, is_quantized, open_network
from shardqa_toolchain.conversion.probes import Probe, probe
from shardqa_toolchain.conversion.reference import Outputs

# All outputs but evidence and relevance, which count by themselves. A span's logits are added, and a task of a few
# labels has too few to have spreads of its own.
TOGETHER = "the network"


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Bounds within which B is taken for A; None is not looked at."""

    # Of any logit, in spreads: standard deviations of A's logits of that output.
    largest_difference: float | None = None
    error: float | None = None  # root mean square of the differences of any output, in its spreads
    span_agreement: float | None = None  # percent of the rows whose best span is the same, at least
    f1_loss: float | None = None  # F1 of A less F1 of B, percent; looked at where questions have answers


# Float32 written otherwise: only the order of sums differs.
FLOAT = Thresholds(largest_difference=1e-3, error=1e-4, span_agreement=99, f1_loss=0.1)

# Numbers of fewer bits: answers stay, logits move a little. int8 as shipped differs by 0.03 spreads.
QUANTIZED = Thresholds(error=0.1, span_agreement=80, f1_loss=2.0)


def thresholds_for(path: Path) -> Thresholds:
    """QUANTIZED for a network that holds weights of 8 bits, else FLOAT."""
    return QUANTIZED if is_quantized(path) else FLOAT


@dataclass(frozen=True, slots=True)
class Verdict:
    """Differences of two networks, and whether B may be taken for A."""

    inputs: str
    rows: int
    largest_difference: float  # of any logit of a real token
    mean_difference: float  # mean absolute difference of the logits
    # Root mean square of the differences in standard deviations of A's logits, of the output where it is largest.
    error: float
    spread: float  # that standard deviation
    output: str  # that output, or TOGETHER
    thresholds: Thresholds
    span_agreement: float | None = None  # percent; None for networks that point at no spans
    exact_match: tuple[float, float] | None = None  # A's and B's, percent; None without questions
    f1: tuple[float, float] | None = None  # A's and B's, percent
    failures: tuple[str, ...] = ()  # each threshold that was missed, in a sentence

    @property
    def passed(self) -> bool:
        return not self.failures

    def as_json(self) -> dict[str, Any]:
        return {"passed": self.passed, **asdict(self), "failures": list(self.failures)}


def verify(
    a: Path,
    b: Path,
    questions: Path | None = None,
    limit: int | None = None,
    thresholds: Thresholds = FLOAT,
    threads: int = 1,
) -> Verdict:
    """Compare B with A, each a checkpoint's or ONNX folder or an ONNX file.

    Inputs are ``limit`` questions of a SQuAD file (all unless given); without a file, questions of ``seeds/`` in a
    checkout, else random wordpieces. Raises BadModel when either can't be run or they have no output in common,
    BadData for questions that can't be used.
    """
    first, second = open_network(Path(a), threads), open_network(Path(b), threads)
    probe = _shared_probe(first, second, questions, limit)
    return compare(first, second, probe, thresholds)


def compare(a: OpenNetwork, b: OpenNetwork, inputs: Probe, thresholds: Thresholds) -> Verdict:
    """Compares networks that are open; raises BadModel as `verify` does."""
    differences: dict[str, _Differences] = {}
    spans = _Spans()
    for batch in batches(inputs.rows):
        ours, theirs = a.network.outputs(batch), b.network.outputs(batch)
        _check_outputs(a, b, ours, theirs)
        for name in ours.keys() & theirs.keys():
            output = name if name in EVIDENCE_HEADS else TOGETHER
            differences.setdefault(output, _Differences()).add(*_real(batch, ours[name], theirs[name]))
        if all(name in outputs for name in SPANS for outputs in (ours, theirs)):
            spans.add(batch, ours, theirs)
    return _verdict(inputs, differences, spans, thresholds)


def _shared_probe(a: OpenNetwork, b: OpenNetwork, questions: Path | None, limit: int | None) -> Probe:
    if a.tokenizer and b.tokenizer and sha256(a.tokenizer) != sha256(b.tokenizer):
        raise BadModel(f"{a.tokenizer} and {b.tokenizer} differ; only models with one tokenizer can be compared")
    vocabulary, positions = min(a.vocabulary, b.vocabulary), min(a.positions, b.positions)
    return probe(a.tokenizer or b.tokenizer, vocabulary, positions, questions, limit)


def _check_outputs(a: OpenNetwork, b: OpenNetwork, ours: Outputs, theirs: Outputs) -> None:
    if not ours.keys() & theirs.keys():
        raise BadModel(
            f"{a.path} gives {', '.join(ours)}; {b.path} gives {', '.join(theirs)}: nothing to compare; "
            "export both with the same names of outputs"
        )
    for name in ours.keys() & theirs.keys():
        if ours[name].shape != theirs[name].shape:
            raise BadModel(f"{name} has shape {ours[name].shape} in {a.path}, {theirs[name].shape} in {b.path}")


def _real(batch: Batch, *values: NDArray[np.float32]) -> Iterator[NDArray[np.float32]]:
    """Yields the values without those of padding; a value that is not of tokens is left as it is."""
    of_tokens = values[0].shape[:2] == batch.attention_mask.shape
    for value in values:
        yield value[batch.attention_mask == 1] if of_tokens else value


@dataclass(slots=True)
class _Differences:
    """Sums over all logits of an output."""

    largest: float = 0.0
    absolute: float = 0.0
    squares: float = 0.0
    count: int = 0
    total: float = 0.0
    total_squares: float = 0.0
    finite: bool = True

    def add(self, ours: NDArray[np.float32], theirs: NDArray[np.float32]) -> None:
        self.finite &= bool(np.isfinite(ours).all() and np.isfinite(theirs).all())
        if not self.finite:
            return
        exact = ours.astype(np.float64)
        gap = np.abs(theirs - exact)
        self.largest = max(self.largest, float(gap.max(initial=0)))
        self.absolute += float(gap.sum())
        self.squares += float((gap**2).sum())
        self.count += gap.size
        self.total += float(exact.sum())
        self.total_squares += float((exact**2).sum())

    @property
    def spread(self) -> float:
        mean = self.total / max(self.count, 1)
        return float(np.sqrt(max(self.total_squares / max(self.count, 1) - mean**2, 0)))

    @property
    def root_mean_square(self) -> float:
        return float(np.sqrt(self.squares / max(self.count, 1)))

    @property
    def error(self) -> float:
        """Returns the mean difference in spreads; infinite where there is a difference and no spread."""
        if not self.spread:
            return float("inf") if self.largest else 0.0
        return self.root_mean_square / self.spread

    @property
    def largest_in_spreads(self) -> float:
        """The largest difference, in spreads."""
        return self.largest / self.spread if self.spread else self.error


Logits = tuple["NDArray[np.float32]", "NDArray[np.float32]"]


@dataclass(slots=True)
class _Spans:
    """Start and end logits of both networks by row."""

    pairs: dict[int, tuple[Logits, Logits]] = field(default_factory=dict)

    def add(self, batch: Batch, ours: Outputs, theirs: Outputs) -> None:
        for line, number in enumerate(batch.rows):
            length = int(batch.attention_mask[line].sum())
            a, b = ((outputs[SPANS[0]][line, :length], outputs[SPANS[1]][line, :length]) for outputs in (ours, theirs))
            self.pairs[number] = a, b

    def agreement(self, rows: Sequence[Row]) -> float:
        """Percent of the rows whose best span is the same."""
        same = 0
        for number, (ours, theirs) in self.pairs.items():
            a, b = (best_spans(*logits, rows[number].passage, n_best=1)[0] for logits in (ours, theirs))
            same += (a.start_token, a.end_token) == (b.start_token, b.end_token)
        return 100 * same / len(self.pairs)

    def scores(self, inputs: Probe, which: int) -> tuple[float, float]:
        """EM and F1 of A (0) or B (1), percent."""
        logits = (self.pairs[number][which] for number in itertools.count())
        reads = [measure.read(one, [next(logits) for _ in one.windows], seconds=0) for one in inputs.readings]
        shares = measure.scores(reads)
        return shares.exact_match, shares.f1


def _verdict(inputs: Probe, outputs: dict[str, _Differences], spans: _Spans, thresholds: Thresholds) -> Verdict:
    agreement = exact_match = f1 = None
    finite = all(one.finite for one in outputs.values())
    if spans.pairs and finite:
        agreement = spans.agreement(inputs.rows)
        if inputs.readings:
            (exact_a, f1_a), (exact_b, f1_b) = (spans.scores(inputs, which) for which in (0, 1))
            exact_match, f1 = (exact_a, exact_b), (f1_a, f1_b)
    worst = max(sorted(outputs), key=lambda name: outputs[name].error)
    failures = _failures(outputs, agreement, f1, thresholds) if finite else ["some logits are NaN or infinite"]
    return Verdict(
        inputs.inputs,
        len(inputs.rows),
        max(one.largest for one in outputs.values()),
        sum(one.absolute for one in outputs.values()) / max(1, sum(one.count for one in outputs.values())),
        outputs[worst].error,
        outputs[worst].spread,
        worst,
        thresholds,
        agreement,
        exact_match,
        f1,
        tuple(failures),
    )


def _failures(
    outputs: dict[str, _Differences],
    agreement: float | None,
    f1: tuple[float, float] | None,
    thresholds: Thresholds,
) -> Iterator[str]:
    if not any(one.spread for one in outputs.values()):
        yield "all logits of A are equal, so that nothing can be told by them"
        return
    for name, one in sorted(outputs.items()):
        largest, error = one.largest_in_spreads, one.error
        if thresholds.largest_difference is not None and largest > thresholds.largest_difference:
            yield f"a logit of {name} differs by {largest:.2g} spreads, {thresholds.largest_difference:g} is allowed"
        if thresholds.error is not None and error > thresholds.error:
            yield f"logits of {name} differ by {error:.2g} spreads (root mean square), {thresholds.error:g} is allowed"
    if thresholds.span_agreement is not None and agreement is not None and agreement < thresholds.span_agreement:
        yield f"{agreement:.1f} % of the best spans agree, {thresholds.span_agreement:g} % are wanted"
    if thresholds.f1_loss is not None and f1 is not None and f1[0] - f1[1] > thresholds.f1_loss:
        yield f"F1 falls from {f1[0]:.2f} to {f1[1]:.2f}, at most {thresholds.f1_loss:g} less is wanted"
