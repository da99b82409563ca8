"""`shardqa-models tune`: which setting of the reader is fastest on this machine."""

from __future__ import annotations

import os
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from shardqa.cli.options import JsonOption
from shardqa.cli.output import out, print_json, print_table
from shardqa.machine import label
from shardqa.models import shipped


def tune(
    seconds: Annotated[float, typer.Option(help="Seconds to try for.", min=0.1, max=600)] = 2.0,
    shards: Annotated[int, typer.Option(help="Shards of this machine, which share its cores.", min=1)] = 1,
    also: Annotated[
        list[Path] | None, typer.Option(help="Folder of another form of the reader, such as float32; may be repeated.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Try how many threads the reader is fastest with here, and whether all give the same; changes nothing.

    Example: shardqa-models tune --shards 2
    """
    from shardqa_toolchain import tuning

    cores = max(1, len(os.sched_getaffinity(0)) // shards)
    tried = tuning.tune(tuning.forms(shipped.checked_folder(), cores, also or []), seconds)
    best = tuning.chosen(tried)
    if as_json:
        rows = [{**asdict(one), "verdict": one.verdict} for one in tried]
        print_json({"machine": label(), "forms": rows, "chosen": best.name, "threads": best.threads})
        return
    print_table(
        ("form", "ms a question", "ratio", "logits differ by", ""),
        [
            (one.name, f"{one.ms:.1f}", f"{one.ms / tried[0].ms:.2f}x", f"{one.difference:.3g}", one.verdict)
            for one in tried
        ],
    )
    out.print(f"{label()}: shardqa up --threads {best.threads}, or THREADS {best.threads} of the module", markup=False)
