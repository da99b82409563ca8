"""The shipped reader's speed by batch and length, and against float32 when a checkpoint is at hand.

    python bench/reader.py [--float-reader DIR] [--also DIR]     # DIR: what `shardqa-models export` or `quantize` wrote

All readers take turns in one run, so that their ratios mean something on a busy machine.
"""

import time
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from shardqa.models import shipped
from shardqa.models.reader import Batch, batches, join
from shardqa.models.session import ReaderSession

SHAPES = [(1, 64), (1, 128), (1, 192), (1, 384), (8, 128), (16, 128)]  # rows x tokens
ROUNDS = 30  # timed runs of each; a fifth as many before them warm up
QUESTION_TOKENS = 12


def batch_of(rows: int, tokens: int) -> Batch:
    """Rows of random wordpieces: the time does not depend on which."""
    dice = np.random.default_rng(0)

    def ids(count: int) -> np.ndarray[tuple[int], np.dtype[np.int32]]:
        return dice.integers(1_000, 30_000, count, dtype=np.int32)

    passage_tokens = tokens - QUESTION_TOKENS - 3
    (batch,) = batches([join(ids(QUESTION_TOKENS), ids(passage_tokens)) for _ in range(rows)])
    return batch


def median_ms(sessions: dict[str, ReaderSession], batch: Batch) -> dict[str, float]:
    """Median time of a run, milliseconds, by reader."""
    times: dict[str, list[float]] = {name: [] for name in sessions}
    for _ in range(ROUNDS + ROUNDS // 5):
        for name, session in sessions.items():
            began = time.perf_counter()
            session.logits(batch)
            times[name].append(time.perf_counter() - began)
    return {name: 1_000 * float(np.median(taken[ROUNDS // 5 :])) for name, taken in times.items()}


def main(
    float_reader: Annotated[Path | None, typer.Option(help="Folder of the float32 reader.")] = None,
    also: Annotated[list[Path] | None, typer.Option(help="Folder of another ONNX reader; may be repeated.")] = None,
    threads: Annotated[int, typer.Option(help="Threads of the network.", min=1)] = 1,
) -> None:
    """Print milliseconds per batch."""
    folders = {shipped.NAME: shipped.checked_folder(), **({"float32": float_reader} if float_reader else {})}
    folders |= {folder.name: folder for folder in also or []}
    sessions = {name: ReaderSession(folder, threads) for name, folder in folders.items()}
    size = sum(path.stat().st_size for path in shipped.folder().iterdir()) / 1e6
    typer.echo(f"{shipped.NAME}: {size:.1f} MB with tokenizer and card; {threads} thread(s), median of {ROUNDS}")
    typer.echo(f"{'rows x tokens':>14} " + " ".join(f"{name + ' ms':>18}" for name in sessions))
    for rows, tokens in SHAPES:
        taken = median_ms(sessions, batch_of(rows, tokens))
        typer.echo(f"{rows:>6} x {tokens:<5} " + " ".join(f"{taken[name]:>18.1f}" for name in sessions))


if __name__ == "__main__":
    typer.run(main)
