"""Faults on the command line: the line they print, the exit code they end with, and their JSON where that was asked."""

import sys
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import typer

from shardqa.cli import output
from shardqa.cli.output import FAILED, INTERRUPTED, NO_CLUSTER, NOTHING, USAGE, print_json, say
from shardqa.errors import SetupError, ShardqaError, UserRefused

if TYPE_CHECKING:
    from shardqa.http_schema import Problem  # imported where it is made: few runs end with one

REMEDIES = {  # by the fault's code: ways out on the command line, where the fault itself names none
    "several_corpora": "name one with --corpus, or set SHARDQA_CORPUS",
    "unknown_corpus": "name another with --corpus, or make it with 'shardqa ingest'",
}
NOT_FOUND = 404
UNREACHABLE = (429, 503, 504)  # nobody there, too busy, too slow


class WrongSetting(SetupError):
    """A flag, a variable or a line of the settings' file has a value that is not allowed."""

    code = SetupError.code
    status = 422


def exit_of(error: Any) -> int | None:
    """Prints the error that ended a run, and returns the exit code; None for a bug."""
    output.err.quiet = False
    if isinstance(error, ShardqaError):
        return report(error)
    if isinstance(error, typer.Abort):
        return INTERRUPTED
    if isinstance(error, OSError):
        has_name = error.filename is not None
        return report(WrongSetting(f"{error.filename} can't be used: {error.strerror}")) if has_name else None
    return _wrong_usage(error)


def _wrong_usage(error: Any) -> int:
    from typer.rich_utils import rich_format_error

    rich_format_error(error)
    if output.wants_json(sys.argv):
        print_json(problem("usage", 422, error.format_message()).model_dump(exclude_none=True))
    return USAGE


def exit_code(fault: ShardqaError) -> int:
    if fault.status == NOT_FOUND:
        return NOTHING
    if isinstance(fault, UserRefused):
        return FAILED  # a cluster is there, and answers
    if fault.status in UNREACHABLE:
        return NO_CLUSTER
    return USAGE if fault.status < 500 else FAILED


def report(fault: ShardqaError) -> int:
    """Prints a fault, and returns the exit code."""
    say("; ".join(filter(None, (f"shardqa: {fault}", REMEDIES.get(fault.code)))))
    if output.wants_json(sys.argv):
        print_json(problem(fault.code, fault.status, str(fault)).model_dump(exclude_none=True))
    return exit_code(fault)


def problem(code: str, status: int, detail: str) -> "Problem":
    """Returns a fault in the API's form, with a remedy that names commands rather than routes."""
    from shardqa.http_schema import Problem

    return Problem(
        type=f"/docs#{code}",
        title=code.replace("_", " ").capitalize(),
        status=status,
        detail=detail,
        instance=f"urn:uuid:{uuid4()}",
        code=code,
        remedy=REMEDIES.get(code, "see 'shardqa COMMAND --help'"),
    )
