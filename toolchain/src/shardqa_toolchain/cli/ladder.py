"""`shardqa-models ladder`: what is measured is said while it runs, then printed and drawn."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from shardqa.cli.options import JsonOption
from shardqa.cli.output import print_json, print_table, say
from shardqa_toolchain.cli.needs import need

if TYPE_CHECKING:
    from shardqa_toolchain.ladder.run import Ladder, Rung

COLUMNS = ("step", "factor", "questions/s", "p50 ms", "p99 ms", "memory MB", "start s", "file MB", "F1")


def ladder(
    checkpoint: Annotated[
        Path | None, typer.Option("--checkpoint", help="Trained checkpoint; made of the shipped reader unless given.")
    ] = None,
    reader: Annotated[
        Path | None, typer.Option("--reader", help="The same in int8; the shipped reader, or made of the checkpoint.")
    ] = None,
    base: Annotated[
        Path | None,
        typer.Option("--base", help="Checkpoint to begin with; random, of BERT-base's shape, unless given."),
    ] = None,
    questions: Annotated[
        Path | None, typer.Option("--questions", exists=True, help="SQuAD file to draw from; seeds/ unless given.")
    ] = None,
    count: Annotated[int, typer.Option("--count", help="Questions to time.", min=1)] = 50,
    scored: Annotated[int, typer.Option("--scored", help="Questions to score.", min=1)] = 500,
    rounds: Annotated[int, typer.Option("--rounds", help="Times that every step is measured.", min=1)] = 3,
    out: Annotated[Path | None, typer.Option("--out", help="Picture to draw, as SVG.")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="A trial of seconds, on tiny random networks.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Measure each step from naive serving to the shipped reader on this machine: speed, memory, size, accuracy.

    Example: shardqa-models ladder --questions dev-v1.1.json.gz --out ladder.svg
    """
    need("torch", "transformers", "onnx", "safetensors")
    from shardqa_toolchain.ladder import run

    settings = run.Settings(checkpoint, reader, base, questions, count, scored, rounds)
    if quick:
        settings = run.Settings(count=2, rounds=1, seconds=0.0, quick=True)
    with tempfile.TemporaryDirectory(prefix="shardqa-ladder-") as work:
        climbed = run.climb(settings, Path(work), say)
    if out is not None:
        out.write_text(run.drawn(climbed), encoding="utf-8")
    if as_json:
        print_json(climbed.as_json())
    else:
        _tell(climbed)


def _tell(climbed: Ladder) -> None:
    print_table(COLUMNS, [_cells(rung) for rung in (*climbed.rungs, climbed.cached)])
    for rung in climbed.rungs:
        say(f"{rung.name}: {rung.what}")
    say(f"{climbed.inputs}; {climbed.machine}; medians of {climbed.rounds} rounds")
    say(f"{climbed.gain:.1f} times the first step's throughput, without the cache")
    naive, own = climbed.servers
    rows = [
        (what, f"{a:.2f}", f"{b:.2f}", f"{a / b:.1f}x")
        for what, a, b in (
            ("resident, MB", naive.memory, own.memory),
            ("of which its own, MB", naive.unshared, own.unshared),
            ("start to first answer, s", naive.start, own.start),
            ("a question over HTTP, p50, ms", naive.p50, own.p50),
        )
    ]
    print_table(("one core", naive.name, own.name, ""), rows)
    say("of which, MB: " + ", ".join(f"{part} {size:.1f}" for part, size in climbed.account.items()))


def _cells(rung: Rung) -> list[str | None]:
    from shardqa_toolchain.ladder.run import number

    values = (rung.throughput, rung.p50, rung.p99, rung.memory, rung.start, rung.file, rung.f1)
    return [rung.name, f"{rung.factor:.2f}x" if rung.factor else None, *(v if v is None else number(v) for v in values)]
