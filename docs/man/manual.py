"""Writes shardqa.1, the manual page, from the program's own commands and options: python docs/man/manual.py"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer.main

import shardqa
from shardqa.cli import app
from shardqa.cli.output import EXIT_CODES


def page() -> str:
    program = typer.main.get_command(app)
    lines = [
        f'.TH SHARDQA 1 "" "shardqa {shardqa.__version__}" "User Commands"',
        ".SH NAME",
        r"shardqa \- question answering inside Redis Cluster",
        ".SH SYNOPSIS",
        r".B shardqa",
        r".I COMMAND",
        r"[\fIOPTIONS\fR] [\fIARGUMENTS\fR]",
        ".SH COMMANDS",
    ]
    for name, command in _leaves(program, ""):
        lines += _command(name, command)
    lines += [".SH EXIT STATUS"]
    for code, meaning in EXIT_CODES.items():
        lines += [".TP", f".B {code}", _roff(f"{meaning[0].upper()}{meaning[1:]}.")]
    return "\n".join(lines) + "\n"


def _leaves(command: Any, name: str) -> Iterator[tuple[str, Any]]:
    below = getattr(command, "commands", None)
    if below is None:
        yield name, command
    else:
        for word, one in below.items():
            yield from _leaves(one, f"{name} {word}".strip())


def _command(name: str, command: Any) -> Iterator[str]:
    arguments = [one for one in command.params if one.param_type_name == "argument"]
    words = " ".join(f"\\fI{_roff(_word(one))}\\fR" for one in arguments)
    yield f".SS {_roff(name)} {words}".rstrip()
    for paragraph in (command.help or "").split("\n\n"):
        yield from (_roff(" ".join(paragraph.split())), ".PP")
    for one in command.params:
        text = getattr(one, "help", None)
        if text and not getattr(one, "hidden", False):
            names = ", ".join(one.opts) if one.param_type_name == "option" else _word(one)
            yield from (".TP", f".B {_roff(names)}", _roff(text))


def _word(argument: Any) -> str:
    return str(argument.metavar or argument.name.upper())


def _roff(text: str) -> str:
    escaped = text.replace("\\", "\\e").replace("-", "\\-")
    return f"\\&{escaped}" if escaped[:1] in (".", "'") else escaped


if __name__ == "__main__":
    Path(__file__).with_name("shardqa.1").write_text(page())
