"""`shardqa-models ladder`: what is measured is said while it runs, then printed and drawn."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from shardqa.cli.options import JsonOption
from shardqa.cli.output import print_json, print_table, say
from shardqa.errors import BadModel, SetupError
from shardqa_toolchain.cli.needs import need

if TYPE_CHECKING:
    from shardqa_toolchain.ladder.results import Ladder, Rung

# Beside a checkout, where somebody has put it.
DEFAULT_CHECKPOINT = Path(__file__).resolve().parents[5] / "shared" / "models" / "reader-v0"

QUICK = {"count": 4, "scored": 8, "rounds": 1, "seconds": 0.0, "sides": False}  # settings of a trial

COLUMNS = ("step", "gain", "share", "questions/s", "p50 ms", "p99 ms", "memory MB", "start s", "file MB", "EM", "F1")


def ladder(
    checkpoint: Annotated[
        Path | None, typer.Option("--checkpoint", help="Trained checkpoint; ../shared/models/reader-v0 unless given.")
    ] = None,
    reader: Annotated[
        Path | None, typer.Option("--reader", help="The same in int8, as shipped; made from it unless given.")
    ] = None,
    base: Annotated[
        Path | None, typer.Option("--base", help="Checkpoint to begin with; random, of BERT-base's size, unless given.")
    ] = None,
    questions: Annotated[
        Path | None, typer.Option("--questions", exists=True, help="SQuAD file to draw from; seeds/ unless given.")
    ] = None,
    refusals: Annotated[
        Path | None, typer.Option("--refusals", exists=True, help="SQuAD 2.0 file: score with refusals too.")
    ] = None,
    count: Annotated[int, typer.Option("--count", help="Questions to time.", min=1)] = 100,
    scored: Annotated[int, typer.Option("--scored", help="Questions to score.", min=1)] = 1000,
    rounds: Annotated[int, typer.Option("--rounds", help="Times that every step is measured.", min=1)] = 3,
    seconds: Annotated[float, typer.Option("--seconds", help="Least time of a step in a round.", min=0)] = 4.0,
    sides: Annotated[bool, typer.Option("--sides/--no-sides", help="Also batches, bfloat16 and the cache.")] = True,
    out: Annotated[Path | None, typer.Option("--out", help="Picture to draw, .png or .svg.")] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="A trial of seconds, on tiny random networks unless --checkpoint is given.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Measure each step from naive serving to the shipped reader on this machine: speed, memory, size, accuracy.

    Example: shardqa-models ladder --questions dev-v1.1.json.gz --out ladder.svg
    """
    need("torch", "transformers", "onnx", "safetensors", "matplotlib")
    from shardqa_toolchain.ladder import picture, run

    if out is not None:
        picture.check_ending(out)
    options = {"count": count, "scored": scored, "rounds": rounds, "seconds": seconds, "sides": sides}
    settings = run.LadderSettings(
        checkpoint if quick else checkpoint or default_checkpoint(),
        reader,
        base,
        questions,
        refusals,
        **(options | (QUICK if quick else {})),  # type: ignore[arg-type]
    )
    with tempfile.TemporaryDirectory(prefix="shardqa-ladder-") as work:
        climbed = run.run(settings, Path(work), say)
    if out is not None:
        picture.draw(climbed, out)
    tell(climbed, as_json)
    if climbed.faults:
        raise SetupError("; ".join(climbed.faults))


def default_checkpoint() -> Path:
    """Returns the checkpoint that is taken unless one is named; raises BadModel when it is not there."""
    if not DEFAULT_CHECKPOINT.is_dir():
        raise BadModel(f"{DEFAULT_CHECKPOINT} is not here; name a trained checkpoint: --checkpoint FOLDER, or --quick")
    return DEFAULT_CHECKPOINT


def tell(climbed: Ladder, as_json: bool) -> None:
    from shardqa_toolchain.ladder.results import WANTED_GAIN

    if as_json:
        print_json(climbed.as_json())
        return
    refusing = any(rung.refusing for rung in climbed.rungs)
    columns = (*COLUMNS, "F1 with refusals", "") if refusing else (*COLUMNS, "")
    print_table(columns, [_cells(rung, refusing) for rung in climbed.rungs], f"{climbed.inputs}; {climbed.machine}")
    say(f"{climbed.inputs}; {climbed.machine}; medians of {climbed.rounds} rounds")
    for rung in climbed.rungs:
        say(f"{rung.name}: {rung.what}{'' if rung.counted else ' (beside the ladder)'}")
    if climbed.gain is not None:
        wanted = "tiny random networks, which says nothing" if climbed.tiny else f"wanted: {WANTED_GAIN:.0f}"
        say(f"{climbed.gain:.1f} times the throughput of the first step, without the cache ({wanted})")


def _cells(rung: Rung, refusing: bool) -> list[str | None]:
    figures, scored = rung.figures, rung.scored
    measured: list[str | None] = [None] * 5
    if figures:
        alone = [None if value is None else f"{value:.2f}" for value in (figures.p50, figures.p99)]
        measured = [f"{figures.throughput:.2f}", *alone, f"{figures.memory:.0f}", f"{figures.start:.2f}"]
    gain = None if rung.gain is None else f"{rung.gain:.2f}x"
    share = None if rung.share is None else f"{rung.share:.1%}"
    scores: list[str | None] = [f"{scored.exact_match:.2f}", f"{scored.f1:.2f}"] if scored else [None, None]
    if refusing:
        scores.append(f"{rung.refusing.f1:.2f}" if rung.refusing else None)
    return [rung.name, gain, share, *measured, f"{rung.file:.1f}", *scores, "failed" if rung.fault else rung.unscored]
