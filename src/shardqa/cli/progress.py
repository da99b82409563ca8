"""Progress of long commands: a bar on a terminal, elsewhere a line of JSON now and then. Always on stderr."""

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic
from typing import Any

from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

from shardqa.cli.output import err
from shardqa.loader.summary import Summary

LINE_SECONDS = 10.0  # until the first line of JSON, and between two: short runs say nothing

Show = Callable[[Summary], None]


def progress_record(summary: Summary, total: int | None) -> dict[str, Any]:
    """Returns a record of progress: counts, rate, and the seconds left (null while unknown)."""
    share = min(summary.stored / total, 1.0) if total else float(total == 0)
    left = summary.seconds * (1 - share) / share if share else None
    return {
        "documents": summary.documents + summary.unchanged,
        "failures": summary.skipped,
        "bytes": summary.stored,
        "total": total,
        "mb_per_minute": round(summary.mb_per_minute, 1),
        "seconds": round(summary.seconds, 1),
        "eta_seconds": None if left is None else round(left, 1),
    }


class ProgressLines:
    """Writes a line of JSON every `seconds` at most."""

    def __init__(self, seconds: float = LINE_SECONDS) -> None:
        self._seconds = seconds
        self._next = monotonic() + seconds

    def write(self, record: dict[str, Any]) -> None:
        if monotonic() >= self._next:
            self._next = monotonic() + self._seconds
            sys.stderr.write(json.dumps(record) + "\n")
            sys.stderr.flush()


@contextmanager
def showing(what: str, total: int | None) -> Iterator[Show]:
    """Yields a callback for the summary after each document; `total` is their bytes, None while nobody knows."""
    if not err.is_terminal:
        lines = ProgressLines()
        yield lambda summary: lines.write(progress_record(summary, total))
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TextColumn("{task.fields[documents]} documents, {task.fields[rate]:.1f} MB/min,"),
        TextColumn("{task.fields[failures]} skipped,"),
        TimeRemainingColumn(),
        TextColumn("left"),
    )
    with Progress(*columns, console=err, transient=True) as bar:
        task = bar.add_task(what, total=total if total is None else max(total, 1), documents=0, rate=0.0, failures=0)

        def show(summary: Summary) -> None:
            bar.update(
                task,
                completed=summary.stored,
                documents=summary.documents + summary.unchanged,
                rate=summary.mb_per_minute,
                failures=summary.skipped,
            )

        yield show
