"""The `shardqa` program: its commands, and the one place where a fault becomes a line and an exit code.

A user's mistake (ShardqaError) is one line on stderr and exit code 1, never a traceback; anything else is a bug and
keeps its traceback.
"""

import sys
from typing import Annotated

import typer

import shardqa
from shardqa.commands import answers, benchmark, documents, evaluating, looking, models, up
from shardqa.errors import ShardqaError

app = typer.Typer(
    name="shardqa",
    help="Question answering inside Redis Cluster. Start with: shardqa up",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("up")(up.up)
app.command("down")(up.down)
app.command("demo")(up.demo)
app.command("status")(looking.status)
app.command("ingest")(documents.ingest_)
app.command("ask")(answers.ask)
app.command("delete")(documents.delete)
app.command("prepare")(looking.prepare)
app.command("doctor")(looking.doctor_)
app.command("module-path")(looking.module_path)
app.add_typer(evaluating.app, name="eval")
app.add_typer(benchmark.app, name="bench")
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
        print(f"shardqa: {error}", file=sys.stderr)
        sys.exit(1)


if __name__ == "__main__":
    main()
