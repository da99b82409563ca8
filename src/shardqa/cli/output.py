"""Printing: data on stdout, everything else on stderr; tables for people, tabs in a pipe."""

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import typer
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

# Exit codes; 0 is well.
NOTHING = 1  # no answer, nothing found
FAILED = 1  # a fault that is none of the others
USAGE = 2  # what was asked for can't be
NO_CLUSTER = 3  # no connection, or none that answers
PARTLY = 4  # some of it failed; the rest is done
INTERRUPTED = 130
BROKEN_PIPE = 141  # as a shell has it of a program that SIGPIPE ends
EXIT_CODES = {
    0: "done",
    NOTHING: "no answer, nothing found, or a fault that is none of the others",
    USAGE: "wrong usage: an unknown option, an impossible value, a file that is not there",
    NO_CLUSTER: "no cluster, or none that answers in time",
    PARTLY: "a part failed: documents left out, shards that did not answer",
    INTERRUPTED: "stopped by Ctrl-C",
    BROKEN_PIPE: "nobody reads what is printed",
}
assert FAILED == NOTHING


class Printer(Console):
    def on_broken_pipe(self) -> None:
        """Leaves a broken pipe to `main`: rich itself would exit with 1, which means that there is no answer."""
        raise BrokenPipeError


out = Printer(highlight=False, soft_wrap=True, emoji=False)  # `:house:` is a part of a key
err = Printer(stderr=True, highlight=False, soft_wrap=True, emoji=False)


def dress(color: str, quiet: bool) -> None:
    """Makes the consoles anew in place, since modules have imported them: a console looks at the terminal once."""
    for console, is_quiet in ((out, False), (err, quiet)):
        Console.__init__(
            console,
            stderr=console is err,
            highlight=False,
            soft_wrap=True,
            emoji=False,
            quiet=is_quiet,
            force_terminal=color == "always" or None,
            no_color=color == "never" or None,
        )


def say(text: str) -> None:
    """Prints news for the person at the terminal, on stderr."""
    err.print(text, markup=False)


def counted(count: int, noun: str) -> str:
    """Returns `1 document`, `2 documents`."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def wants_json(words: Sequence[str]) -> bool:
    """Returns whether a command line asks for JSON, by its words: typer never parses a wrong line."""
    before = words[: words.index("--")] if "--" in words else words
    return "--json" in before


def print_json(value: Any) -> None:
    sys.stdout.write(json.dumps(value, ensure_ascii=False, indent=2 if out.is_terminal else None) + "\n")
    sys.stdout.flush()  # a command that stays in the foreground has told what it is asked for


def print_records(records: Sequence[Any], as_json: bool, title: str | None = None) -> None:
    """Prints one or more dataclasses of one kind, a row each."""
    rows = [asdict(record) for record in records]
    if as_json:
        print_json(rows)
    else:
        print_table([name.replace("_", " ") for name in rows[0]], [list(row.values()) for row in rows], title)


def report(as_json: bool, record: Any, *lines: str) -> None:
    """Prints a record as JSON, or lines for the person at the terminal."""
    if as_json:
        print_json(record)
        return
    for line in lines:
        say(line)


def print_table(columns: Sequence[str], rows: Sequence[Sequence[Any]], title: str | None = None) -> None:
    """Prints a table on a terminal; in a pipe a line of names and a line per row, with tabs."""
    cells = [["" if value is None else str(value) for value in row] for row in rows]
    if not out.is_terminal:
        for line in [list(columns), *cells]:
            sys.stdout.write("\t".join(cell.replace("\t", " ").replace("\n", " ") for cell in line) + "\n")
        return
    table = Table(
        title=title, title_justify="left", header_style="bold", box=box.SIMPLE_HEAD, show_edge=False, padding=0
    )
    for i, name in enumerate(columns):
        is_number = bool(cells) and all(row[i][:1].isdigit() or not row[i] for row in cells)
        table.add_column(name, justify="right" if is_number else "left")
    for row in cells:
        table.add_row(*map(Text, row))
    out.print(table, soft_wrap=False)


def end(silent: list[str], is_something: bool) -> None:
    """Exits with the code for shards that failed or for an empty list; returns where all is there."""
    if silent:
        say(f"without the documents of {', '.join(silent)}")
        raise typer.Exit(PARTLY)
    if not is_something:
        raise typer.Exit(NOTHING)
