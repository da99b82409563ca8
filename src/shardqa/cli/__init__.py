"""The `shardqa` program: its commands, and the one place where a fault becomes a line and an exit code.

A user's mistake (ShardqaError) is one line on stderr and exit code 1, never a traceback; anything else is a bug and
keeps its traceback.
"""

import sys
from typing import Annotated

import typer

import shardqa
from shardqa.cli import (
    ask,
    backup,
    bench,
    config,
    delete,
    demo,
    doctor,
    eval,
    ingest,
    models,
    prepare,
    stages,
    status,
    up,
)
from shardqa.errors import ShardqaError

REMEDIES = {  # by the fault's code: ways out on the command line, where the fault itself names none
    "unknown_corpus": "name another with --corpus, or make it with 'shardqa ingest'",
}

app = typer.Typer(
    name="shardqa",
    help="Question answering inside Redis Cluster. Start with: shardqa up",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("up")(up.up)
app.command("down")(up.down)
app.command("demo")(demo.demo)
app.command("status")(status.status)
app.command("ingest")(ingest.ingest_)
app.command("ask")(ask.ask)
app.command("delete")(delete.delete)
app.command("prepare")(prepare.prepare)
app.command("doctor")(doctor.doctor_)
app.command("backup")(backup.backup)
app.command("restore")(backup.restore_)
app.command("module-path")(prepare.module_path)
app.add_typer(config.app, name="config")
app.add_typer(eval.app, name="eval")
bench.app.command("stages")(stages.bench_stages)
app.add_typer(bench.app, name="bench")
app.add_typer(models.app, name="models")


def _version(wanted: bool) -> None:
    if wanted:
        print(shardqa.__version__)
        raise typer.Exit


@app.callback()
def shardqa_(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None: ...


def main() -> None:
    try:
        app()
    except ShardqaError as error:
        print("; ".join(filter(None, (f"shardqa: {error}", REMEDIES.get(error.code)))), file=sys.stderr)
        sys.exit(1)
