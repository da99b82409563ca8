"""`shardqa models push` and `rm`: readers, and any other model, on every shard of a cluster."""

from pathlib import Path
from typing import Annotated

import typer

from shardqa.cli.connection import with_engine
from shardqa.cli.options import JsonOption, Target, on_cluster
from shardqa.cli.output import report, say
from shardqa.cli.prepare import tell
from shardqa.loader.models import STORE_SECONDS
from shardqa.models import shipped

app = typer.Typer(name="models", help="Store models on a cluster.", no_args_is_help=True)


@app.command()
@on_cluster
def push(
    target: Target,
    model: Annotated[
        str,
        typer.Argument(metavar="MODEL", help="A reader's folder; with FILE: its model's name."),
    ],
    file: Annotated[
        Path | None, typer.Argument(metavar="[FILE]", help="Any model: .onnx, .pt (TorchScript), .tflite.")
    ] = None,
    encoder: Annotated[
        Path | None,
        typer.Option(
            "--encoder",
            metavar="FOLDER",
            help="Its encoder: a pair of many languages.",
        ),
    ] = None,
    as_: Annotated[
        str | None, typer.Option("--as", metavar="NAME", help="A reader's name in the cluster; else its folder's.")
    ] = None,
    replace: Annotated[bool, typer.Option("--replace", help="Replace another model of this name.")] = False,
    backend: Annotated[str, typer.Option("--backend", help="Of FILE: ONNX, TORCH or TFLITE.")] = "",
    device: Annotated[str, typer.Option("--device", help="Of FILE: CPU, CPU:n, GPU or GPU:n.")] = "CPU",
    batch_size: Annotated[int, typer.Option("--batch-size", min=0, help="Of FILE: rows that may run together.")] = 0,
    tag: Annotated[str, typer.Option("--tag", help="Of FILE: a word of your own in its TAG.")] = "",
    as_json: JsonOption = False,
) -> None:
    """Store a reader, or any model file, on every shard of a cluster, and keep it there.

    SHARDQA_MODEL=NAME answers with a pushed reader; any other runs as model:NAME:{tag of the shard}.

    Example: shardqa models push build/my-reader --redis 10.0.0.5:7000
    Example: shardqa models push build/reader-m1-int8 --encoder build/encoder-m1-int8
    Example: shardqa models push sentiment sentiment.onnx --batch-size 8
    """
    from shardqa.loader import push as pushing
    from shardqa.loader.models import ShardModel

    settings = target.settings(timeout=STORE_SECONDS)
    if encoder is not None:
        tell(with_engine(settings, lambda engine: pushing.push_pair(engine, Path(model), encoder)), as_json)
        say("next: shardqa corpus set languages=on --corpus NAME")
        return
    if file is not None:
        pushing.check_name(model, "NAME")
        shard_model = ShardModel.of_file(model, file, backend, device, batch_size, tag)
        outcome = with_engine(settings, lambda engine: pushing.push_file(engine, shard_model, replace))
        line = f"model {model} ({shard_model.backend}) stored on: {', '.join(outcome.stored) or 'none, it was there'}"
        report(as_json, {"model": model, "backend": shard_model.backend, "stored": outcome.stored}, line)
        return
    folder = shipped.folder() if model == shipped.NAME else Path(model)
    name = as_ or folder.resolve().name
    if model != shipped.NAME or name != shipped.NAME:
        pushing.check_name(name, "--as")
    tell(with_engine(settings, lambda engine: pushing.push(engine, folder, name, replace)), as_json)
    if name != settings.model:
        say(f"next: ask and serve with SHARDQA_MODEL={name}")


@app.command()
@on_cluster
def rm(
    target: Target,
    model: Annotated[str, typer.Argument(metavar="MODEL", help="The name that it was pushed under.")],
    as_json: JsonOption = False,
) -> None:
    """Remove a pushed model, or a former release's reader, from every shard. The reader in use and the encoder stay.

    Example: shardqa models rm sentiment
    """
    from shardqa.loader import push as pushing

    nodes = with_engine(target.settings(timeout=STORE_SECONDS), lambda engine: pushing.drop(engine, model))
    line = f"model {model} removed from: {', '.join(nodes) or 'none, it was nowhere'}"
    report(as_json, {"model": model, "removed": nodes}, line)
