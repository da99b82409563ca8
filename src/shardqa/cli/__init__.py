"""The `shardqa` program: its commands, and the one place where a fault becomes a line and an exit code.

A user's mistake (a ShardqaError, or a file that can't be read or written) is one line on stderr and an exit code of
`output`, never a traceback; anything else is a bug and keeps its traceback.
"""

import sys
from enum import StrEnum
from typing import Annotated, Any

import typer

import shardqa
from shardqa.cli import output
from shardqa.cli.verbs import HELP, Verbs, spell_switches
from shardqa.errors import ShardqaError

UsageError: Any = typer.BadParameter.__bases__[0]  # typer has no public name for it

app = typer.Typer(
    name="shardqa",
    cls=Verbs,
    help="Question answering inside Redis Cluster. Start with: shardqa up",
    invoke_without_command=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": HELP},
)


class Color(StrEnum):
    auto = "auto"
    always = "always"
    never = "never"


def _version(is_on: bool) -> None:
    if is_on:
        print(shardqa.__version__)
        raise typer.Exit


@app.callback()
def shardqa_(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, metavar="", help="Print the version.")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", metavar="", help="On stderr, only what went wrong.")] = False,
    color: Annotated[Color, typer.Option("--color", help="Colors: on a terminal, always, or without.")] = Color.auto,
) -> None:
    if quiet or color != Color.auto:
        output.dress(color, quiet)
    if context.invoked_subcommand is None:
        from shardqa.cli.overview import overview  # what no other command needs

        overview()


def main(program: typer.Typer = app) -> None:
    """Runs a program, and turns a fault of its user into a line and an exit code."""
    command: Any = typer.main.get_command(program)
    if program is not app:
        spell_switches(command)
    try:
        result = command(standalone_mode=False)
    except (ShardqaError, OSError, UsageError, typer.Abort) as error:
        from shardqa.cli import faults  # what a run without a fault need not import

        code = faults.exit_of(error)
        if code is None:
            raise
        sys.exit(code)
    sys.exit(result if isinstance(result, int) else 0)
