"""`shardqa-models encoder`: the network that makes vectors of passages, ready to be pushed."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from shardqa.cli.options import JsonOption
from shardqa.cli.output import print_json, say
from shardqa_toolchain.cli.needs import need


class EncoderForm(StrEnum):
    int8 = "int8"
    float = "float"


def encoder(
    out: Annotated[Path, typer.Option("--out", help="New folder to write to.")],
    folder: Annotated[
        Path | None,
        typer.Argument(help="Folder of a sentence encoder's checkpoint; all-MiniLM-L6-v2 unless given."),
    ] = None,
    form: Annotated[EncoderForm, typer.Option("--form", help="int8 takes half the time of float.")] = EncoderForm.int8,
    as_json: JsonOption = False,
) -> None:
    """Write a sentence encoder as shards run it; 'shardqa dense push' stores it on a cluster.

    Example: shardqa-models encoder --out my-encoder
    """
    need("onnx", "safetensors")
    from shardqa_toolchain.conversion import embedding

    least = embedding.write_encoder(folder or embedding.packaged(), out, form.value)
    if as_json:
        print_json({"out": str(out), "form": form.value, "least_cosine": float(least)})
        return
    say(f"{out}: {form.value}, cosines with float vectors {least:.4f} and more; next: shardqa dense push {out}")
