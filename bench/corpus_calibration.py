"""What thirty questions of one's own are worth: a corpus's scores before and after `shardqa calibrate`.

    python -m bench.corpus_calibration CANDIDATES.jsonl ... [--draws 20]

Each file is a domain, as `shardqa models candidates --domain` writes it. Before: scores fitted to the other domains, so
the corpus is one never seen. After: fitted further to 30 questions drawn from it at random (60, 120, each with its
absent twin). Both are measured on its other questions; means over draws.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from shardqa.models.scoring import Scoring, shipped_scoring
from shardqa.models.toolchain import calibrate, corpus_calibration
from shardqa.models.toolchain.calibrate import CalibrationQuestion, ScoringOutcome

SIZES = (30, 60, 120)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("candidates", nargs="+", type=Path)
    parser.add_argument("--draws", type=int, default=20)
    given = parser.parse_args()
    domains = {path.stem: calibrate.read_candidates(path) for path in given.candidates}
    print(f"{'corpus':18}{'questions':>10}{'kept':>8}{'refused':>9}{'AUROC':>8}{'ECE':>8}")
    rows = [row for name in domains for row in _rows(name, domains, given.draws)]
    for size in (0, *SIZES):
        _print("mean", size, np.mean([figures for _, count, figures in rows if count == size], axis=0))


def _rows(
    name: str, domains: dict[str, list[CalibrationQuestion]], draws: int
) -> Iterator[tuple[str, int, Sequence[float]]]:
    others = [one for other, asked in domains.items() if other != name for one in asked]
    before = calibrate.fit(others, shipped_scoring()) if others else shipped_scoring()
    for size in (0, *SIZES):
        found = [_figures(_measured(domains[name], before, size, draw)) for draw in range(draws if size else 1)]
        mean = np.mean(found, axis=0)
        _print(name, size, mean)
        yield name, size, mean


def _measured(asked: Sequence[CalibrationQuestion], before: Scoring, size: int, draw: int) -> ScoringOutcome:
    if not size:
        return calibrate.outcome(before, asked)
    words = sorted({one.question for one in asked if one.answerable})
    drawn = set(random.Random(draw).sample(words, size))
    scoring = corpus_calibration.fit([one for one in asked if one.question in drawn], before)
    return calibrate.outcome(scoring, [one for one in asked if one.question not in drawn])


def _figures(found: ScoringOutcome) -> tuple[float, ...]:
    return found.kept, found.refused, found.auroc or 0.0, found.calibration_error


def _print(name: str, size: int, figures: Sequence[float]) -> None:
    kept, refused, auroc, error = figures
    print(f"{name:18}{size or 'none':>10}{kept:>8.1f}{refused:>9.1f}{auroc:>8.3f}{error:>8.3f}", flush=True)


if __name__ == "__main__":
    main()
