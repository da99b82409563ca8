"""`shardqa models ls`, `card`, `add`, `push` and `rm`: models by name or address."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from shardqa.cli import completion
from shardqa.cli.connection import with_engine
from shardqa.cli.options import JsonOption, Target, on_cluster
from shardqa.cli.output import out, print_json, print_table, report, say
from shardqa.cli.prepare import tell
from shardqa.loader.models import STORE_SECONDS

if TYPE_CHECKING:
    from shardqa.models.store import Entry, Store

app = typer.Typer(name="models", help="Keep models by name, and store them on a cluster.", no_args_is_help=True)

StoreOption = Annotated[
    Path | None,
    typer.Option(
        "--store",
        envvar="SHARDQA_STORE",
        metavar="DIR",
        help="Folder of the models; $XDG_DATA_HOME/shardqa/models, or ~/.local/share/shardqa/models, unless given.",
    ),
]
ModelArgument = Annotated[
    str,
    typer.Argument(
        metavar="MODEL",
        help="A name, an address or its first digits, or a folder.",
        autocompletion=completion.models,
    ),
]


def store_of(root: Path | None) -> Store:
    """The store of an option."""
    from shardqa.models.store import Store, default_root

    return Store(root or default_root())


@app.command("ls")
def list_(store: StoreOption = None, as_json: JsonOption = False) -> None:
    """A table of the models: name, address, kind, size, F1, and whether it came with shardqa.

    Example: shardqa models ls
    """
    entries = store_of(store).entries()
    if as_json:
        print_json([_record(entry) for entry in entries])
        return
    columns = ("name", "address", "kind", "size", "F1", "shipped")
    print_table(columns, [_row(entry) for entry in entries])


@app.command()
def card(model: ModelArgument, store: StoreOption = None, as_json: JsonOption = False) -> None:
    """Show a model's card: origin, licence, data, recipe, steps with their verdicts, scores, sizes, latencies.

    Example: shardqa models card reader-v3-int8
    """
    entry = store_of(store).find(model)
    if as_json:
        print_json({**_record(entry), "card": asdict(entry.card) if entry.card else None})
        return
    print_table(("name", "address", "kind", "size", "F1", "shipped"), [_row(entry)])
    out.print(entry.card.as_text() if entry.card else "it has no card", markup=False, end="")


@app.command()
def add(
    folder: Annotated[Path, typer.Argument(help="Folder of the model.")],
    name: Annotated[
        str | None, typer.Option("--name", help="Name of the model; the card's or the folder's unless given.")
    ] = None,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Copy a model's folder into the store, under its content's address, and give it a name.

    Example: shardqa models add my-reader-int8 --name my-reader
    """
    entry = store_of(store).add(folder, name)
    size = f"{entry.kind}, {entry.bytes / 1e6:.1f} MB"
    report(as_json, _record(entry), f"{', '.join(entry.names)} is {entry.address[:12]} ({size}) in {entry.folder}")


@app.command()
@on_cluster
def push(
    target: Target,
    model: Annotated[
        str,
        typer.Argument(
            metavar="MODEL",
            help="A reader: its name, address, or folder. Before FILE: the name of the file's model in the cluster.",
            autocompletion=completion.models,
        ),
    ],
    file: Annotated[
        Path | None, typer.Argument(metavar="[FILE]", help="Any model: .onnx, TorchScript (.pt), .tflite.")
    ] = None,
    as_: Annotated[str | None, typer.Option("--as", metavar="NAME", help="A reader's name in the cluster.")] = None,
    replace: Annotated[bool, typer.Option("--replace", help="Replace another model of this name.")] = False,
    backend: Annotated[str, typer.Option("--backend", help="Of FILE: ONNX, TORCH or TFLITE.")] = "",
    device: Annotated[str, typer.Option("--device", help="Of FILE: CPU, CPU:n, GPU or GPU:n.")] = "CPU",
    batch_size: Annotated[int, typer.Option("--batch-size", min=0, help="Of FILE: rows that may run together.")] = 0,
    tag: Annotated[str, typer.Option("--tag", help="Of FILE: a word of your own in its TAG.")] = "",
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Store a reader, or any model file, on every shard of a cluster, and keep it there.

    SHARDQA_MODEL=NAME answers with a pushed reader; any other runs as model:NAME:{tag of the shard}.

    Example: shardqa models push my-reader --redis 10.0.0.5:7000
    Example: shardqa models push sentiment sentiment.onnx --batch-size 8
    """
    from shardqa.loader import push as pushing
    from shardqa.loader.models import ShardModel
    from shardqa.models.store import check_name

    settings = target.settings(timeout=STORE_SECONDS)
    if file is not None:
        check_name(model, "NAME")
        pushed = ShardModel.of_file(model, file, backend, device, batch_size, tag)
        done = with_engine(settings, lambda engine: pushing.push_file(engine, pushed, replace))
        line = f"model {model} ({pushed.backend}) stored on: {', '.join(done.stored) or 'none, it was there'}"
        report(as_json, {"model": model, "backend": pushed.backend, "stored": done.stored}, line)
        return
    entry = store_of(store).find(model)
    name = as_ or _name_of(entry, model)
    if not (entry.shipped and name in entry.names):
        check_name(name, "--as")
    tell(with_engine(settings, lambda engine: pushing.push(engine, entry.folder, name, replace)), as_json)
    if name != settings.model:
        say(f"next: ask and serve with SHARDQA_MODEL={name}")


@app.command()
@on_cluster
def rm(
    target: Target,
    model: ModelArgument,
    is_pushed: Annotated[
        bool, typer.Option("--pushed", help="From every shard, a file's model by the name it was pushed under.")
    ] = False,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Remove a name from the store, and the model with its last name. Clusters keep what was pushed, but for --pushed.

    Example: shardqa models rm my-reader
    Example: shardqa models rm sentiment --pushed
    """
    if is_pushed:
        from shardqa.loader import push as pushing

        gone = with_engine(target.settings(timeout=STORE_SECONDS), lambda engine: pushing.drop(engine, model))
        line = f"model {model} removed from: {', '.join(gone) or 'none, it was nowhere'}"
        report(as_json, {"model": model, "removed": gone}, line)
        return
    kept = store_of(store).remove(model)
    rest = f"the model stays as {kept[0]}" if kept else "its files are gone"
    report(as_json, {"removed": model, "names": kept}, f"removed {model}; {rest}")


def _name_of(entry: Entry, reference: str) -> str:
    """As it was called; else its first name, or its folder's."""
    return next(iter([reference] if reference in entry.names else entry.names), entry.folder.resolve().name)


def _row(entry: Entry) -> list[Any]:
    return [
        ", ".join(entry.names),
        entry.address[:12],
        entry.kind,
        f"{entry.bytes / 1e6:.1f} MB",
        entry.f1,
        "yes" if entry.shipped else "",
    ]


def _record(entry: Entry) -> dict[str, Any]:
    return {
        "names": entry.names,
        "address": entry.address,
        "kind": entry.kind,
        "bytes": entry.bytes,
        "f1": entry.f1 or None,
        "shipped": entry.shipped,
        "folder": str(entry.folder),
    }
