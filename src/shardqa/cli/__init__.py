"""The `shardqa` program: its commands, and the one place where a fault becomes a line and an exit code.

A user's mistake (a ShardqaError, or a file that can't be read or written) is one line on stderr and an exit code of
`output`, never a traceback; anything else is a bug and keeps its traceback.
"""

import sys
from typing import Annotated, Any

import typer
from typer.rich_utils import rich_format_error

import shardqa
from shardqa.cli import (
    ask,
    backup,
    bench,
    calibrate,
    config,
    corpora,
    delete,
    demo,
    dense,
    doctor,
    eval,
    faults,
    ingest,
    keys,
    mcp,
    models,
    output,
    prepare,
    stages,
    status,
    up,
)
from shardqa.cli.output import INTERRUPTED, USAGE, print_json
from shardqa.errors import ShardqaError

UsageError: Any = typer.BadParameter.__bases__[0]  # typer has no public name for it

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
app.command("search")(corpora.search)
app.command("corpora")(corpora.corpora)
app.command("ls")(corpora.ls)
app.command("show")(corpora.show)
app.command("rm", help=(delete.delete.__doc__ or "").replace("shardqa delete", "shardqa rm"))(delete.delete)
app.command("delete")(delete.delete)
app.command("drop")(corpora.drop)
app.command("mcp")(mcp.mcp)
app.command("calibrate")(calibrate.calibrate)
app.command("prepare")(prepare.prepare)
app.command("doctor")(doctor.doctor_)
app.command("backup")(backup.backup)
app.command("restore")(backup.restore_)
app.command("module-path")(prepare.module_path)
app.add_typer(config.app, name="config")
app.add_typer(keys.app, name="keys")
app.add_typer(eval.app, name="eval")
bench.app.command("stages")(stages.bench_stages)
app.add_typer(bench.app, name="bench")
app.add_typer(models.app, name="models")
app.add_typer(dense.app, name="dense")


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
        ended = app(standalone_mode=False)
    except ShardqaError as fault:
        sys.exit(faults.report(fault))
    except OSError as error:
        if error.filename is None:
            raise
        sys.exit(faults.report(faults.WrongSetting(f"{error.filename} can't be used: {error.strerror}")))
    except UsageError as error:
        rich_format_error(error)
        if output.wants_json(sys.argv):
            print_json(faults.problem("usage", 422, error.format_message()).model_dump(exclude_none=True))
        sys.exit(USAGE)
    except typer.Abort:
        sys.exit(INTERRUPTED)
    sys.exit(ended if isinstance(ended, int) else 0)
