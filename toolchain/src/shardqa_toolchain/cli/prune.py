"""`shardqa-models prune`: a smaller checkpoint, or one with zeros, and what that costs and saves."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from shardqa.cli.options import JsonOption
from shardqa.cli.output import print_json, print_table, say
from shardqa.errors import BadData
from shardqa_toolchain.cli.needs import need
from shardqa_toolchain.cli.training import OutOption

SHARES = (0.0, 0.1, 0.3, 0.5, 0.7, 0.9)  # of zeros, in the report


def prune(
    folder: Annotated[Path, typer.Argument(help="Folder of the checkpoint.")],
    out: OutOption,
    heads: Annotated[float, typer.Option("--heads", help="Share of the attention heads to remove.")] = 0.0,
    columns: Annotated[float, typer.Option("--columns", help="Share of the feed-forward's columns to remove.")] = 0.0,
    weights: Annotated[float, typer.Option("--weights", help="Share of the weights to set to zero, instead.")] = 0.0,
    data: Annotated[
        list[Path] | None, typer.Option("--data", help="SQuAD file on which importance is measured; else by norm.")
    ] = None,
    questions: Annotated[
        Path | None, typer.Option("--questions", help="With --weights: SQuAD file for F1 and time by share of zeros.")
    ] = None,
    limit: Annotated[int, typer.Option("--limit", help="Questions drawn from it.", min=1)] = 500,
    as_json: JsonOption = False,
) -> None:
    """Remove heads and feed-forward columns (smaller and faster), or set weights to zero (no faster).

    Distillation gives back some of what was lost: shardqa-models distil --teacher FOLDER --start OUT.

    Example: shardqa-models prune my-reader --heads 0.25 --columns 0.5 --data train.json.gz --out my-pruned-reader
    """
    need("torch", "onnx", "safetensors")
    from shardqa_toolchain.training import prune as pruning

    if bool(weights) == bool(heads or columns):
        raise BadData("either --weights, which sets weights to zero, or --heads and --columns, which remove parts")
    if weights:
        pruned = pruning.prune_weights(folder, out, weights)
    else:
        pruned = pruning.prune_structures(folder, out, heads, columns, data or ())
    points = pruning.report(folder, questions, limit, SHARES) if questions and weights else []
    if as_json:
        print_json({**asdict(pruned), "report": [asdict(point) for point in points], "out": str(out)})
        return
    if points:
        rows = [(f"{one.zeros:.0%}", f"{one.f1:.2f}", f"{one.milliseconds:.1f}") for one in points]
        print_table(("zeros", "F1", "ms a question"), rows)
    elif not weights:
        print_table(("layer", "heads", "columns"), [(number, *size) for number, size in enumerate(pruned.layers)])
    before, after = pruned.parameters_before, pruned.parameters_after
    say(f"{before:,} parameters before, {after:,} after ({after / before:.1%}); wrote {out}")
