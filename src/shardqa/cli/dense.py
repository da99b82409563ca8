"""`shardqa dense push` and `rm`: passages found by what they mean, beside their words."""

from pathlib import Path
from typing import Annotated

import typer

from shardqa.cli.connection import with_engine
from shardqa.cli.options import JsonOption, Target, on_cluster
from shardqa.cli.output import report
from shardqa.loader import dense
from shardqa.loader.models import STORE_SECONDS
from shardqa.models import shipped

app = typer.Typer(name="dense", help="Find passages by what they mean, beside their words.", no_args_is_help=True)


@app.command()
@on_cluster
def push(
    target: Target,
    folder: Annotated[
        Path | None, typer.Argument(help="Folder that 'shardqa-models encoder' wrote; without it, the shipped encoder.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Store an encoder on every shard, in place of another. Passages get vectors in the background.

    Example: shardqa dense push my-encoder --redis 10.0.0.5:7000
    """
    settings = target.settings(timeout=STORE_SECONDS)
    outcome = with_engine(settings, lambda engine: dense.push(engine, folder or shipped.encoder_folder()))
    name = outcome.label.split()[0]
    report(
        as_json,
        {"encoder": name, "stored": outcome.stored},
        f"encoder {name} stored on: {', '.join(outcome.stored) or 'none, it was there'}",
        "passages get their vectors now; 'shardqa corpus ls' shows how many have one",
    )


@app.command()
@on_cluster
def rm(target: Target, as_json: JsonOption = False) -> None:
    """Remove the encoder from every shard: questions are answered by words alone. Vectors stay, unused.

    Example: shardqa dense rm
    """
    nodes = with_engine(target.settings(), dense.remove)
    report(as_json, {"removed": nodes}, f"encoder removed from: {', '.join(nodes) or 'none, there was none'}")
