"""`shardqa models split`: what a reader costs and saves when its lower layers see question and passage apart."""

from __future__ import annotations

from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from shardqa.cli.connection import JsonOption
from shardqa.cli.output import print_json, print_table, say
from shardqa.extras import need
from shardqa.machine import label

if TYPE_CHECKING:
    from shardqa.models.toolchain import splitting


class NetworkForm(StrEnum):
    int8 = "int8"
    float = "float"


def split(
    folder: Annotated[Path, typer.Argument(help="Folder of the checkpoint.")],
    questions: Annotated[Path, typer.Argument(help="SQuAD file, .json or .json.gz.")],
    cut: Annotated[
        list[int] | None, typer.Option("--cut", help="Layers apart; give it several times. All unless given.", min=0)
    ] = None,
    limit: Annotated[int, typer.Option("--limit", help="Questions drawn at random.", min=1)] = 500,
    threads: Annotated[int, typer.Option("--threads", help="Threads of the network.", min=1)] = 1,
    form: Annotated[NetworkForm, typer.Option("--form", help="Of the networks.")] = NetworkForm.int8,
    as_json: JsonOption = False,
) -> None:
    """Measure each cut of a reader into a lower network for each part and an upper one for both: F1 and milliseconds.

    The weights are taken as they are. `distil --split-layers 3` trains a reader for a cut.

    Example: shardqa models split my-reader dev-v1.1.json.gz --limit 500 --cut 0 --cut 3
    """
    need("onnx", "safetensors")
    from shardqa.models.toolchain import splitting

    settings = splitting.Measuring(questions, limit, threads, form.value)
    found = list(splitting.cuts(folder, cut or None, settings))
    if as_json:
        print_json({"machine": label(), "form": form.value, "cuts": [asdict(one) for one in found]})
        return
    print_table(
        ("apart", "F1", "F1, int8 states", "ms full", "ms both", "ms warm", "warm / full", ""),
        [_row(one) for one in found],
    )
    state_bytes = max(one.state_bytes for one in found)
    passages = ", ".join(map(str, splitting.PASSAGES))
    say(f"{label()}, {threads} thread(s), passages of {passages} tokens; kept states take {state_bytes} bytes a token")


def _row(one: splitting.CutScore) -> tuple[str, ...]:
    shown = (
        "" if value is None else f"{value:.{digits}f}"
        for value, digits in ((one.kept_f1, 2), (one.full_ms, 1), (one.both_ms, 1), (one.warm_ms, 1))
    )
    share = "" if one.warm_ms is None else f"{one.warm_ms / one.full_ms:.2f}"
    return (str(one.layers), f"{one.f1:.2f}", *shown, share, "trained so" if one.is_trained else "")
