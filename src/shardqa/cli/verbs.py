"""The verbs of `shardqa` and where each one's code is. A verb is imported when it is called: half of them need much."""

import ast
import os
import re
import sys
import textwrap
from collections import UserDict
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from shardqa import extras
from shardqa.cli.output import BROKEN_PIPE, EXIT_CODES

# Each verb's module of shardqa.cli, and the function in it, or the app that groups several; as --help groups them.
GROUPS: dict[str, dict[str, tuple[str, str]]] = {
    "Start": {
        "demo": ("demo", "demo"),
        "up": ("up", "up"),
        "down": ("up", "down"),
        "prepare": ("prepare", "prepare"),
        "module-path": ("prepare", "module_path"),
    },
    "Ask": {"ask": ("ask", "ask"), "search": ("documents", "search"), "mcp": ("mcp", "mcp")},
    "Documents": {
        "ingest": ("ingest", "ingest_"),
        "ls": ("documents", "ls"),
        "show": ("documents", "show"),
        "rm": ("documents", "rm"),
        "corpus": ("corpus", "app"),
    },
    "Operate": {
        "status": ("status", "status"),
        "doctor": ("doctor", "doctor_"),
        "config": ("config", "app"),
        "completion": ("shell", "completion"),
        "keys": ("keys", "app"),
        "backup": ("backup", "backup"),
        "restore": ("backup", "restore_"),
    },
    "Models": {"models": ("models", "app"), "dense": ("dense", "app"), "gears": ("gears.app", "app")},
}
VERBS = {name: verb for group in GROUPS.values() for name, verb in group.items()}
HELP = ["-h", "--help"]
# Options of a cluster that have a value; --tls has none.
CLUSTER_VALUES = {"-u", "--redis", "--user", "-a", "--pass", "--password", "--host", "-p", "--port", "--cacert"}
WIDTH = 80  # columns of a small terminal
FIRST_CLAUSE = re.compile(r"[^.;]+")


def summary_of(module: str, name: str) -> str:
    """Returns the first paragraph of a command's docstring, or an app's help, from the file without an import."""
    file = Path(__file__).parent / f"{module.replace('.', '/')}.py"
    for node in ast.parse(file.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef) and node.name == name:
            return " ".join((ast.get_docstring(node) or "").partition("\n\n")[0].split())
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call) and ast.unparse(node.targets[0]) == name:
            return next(str(ast.literal_eval(one.value)) for one in node.value.keywords if one.arg == "help")
    raise AssertionError(f"there is no {name} in {module}.py")


class Verbs(TyperGroup):
    """The program's commands, each imported when it is looked up."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands = _Commands(VERBS)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        return super().parse_args(ctx, self._behind(args, list(self.get_params(ctx))))

    def _behind(self, args: list[str], own: list[Any]) -> list[str]:
        """Puts the options of a cluster that stand before the command, where redis-cli has them, behind it, and the
        program's own before it."""
        valued = {flag for param in own if not param.is_flag for flag in param.opts} | CLUSTER_VALUES
        before, flags, rest = _ahead(args)
        while rest and rest[0].startswith("-"):
            flag, equals, _ = rest[0].partition("=")
            end = 2 if flag in valued and not equals else 1
            (flags if flag in CLUSTER_VALUES | {"--tls"} else before).extend(rest[:end])
            del rest[:end]
        command: Any = self
        words = 0
        while flags and words < len(rest) and rest[words] in getattr(command, "commands", {}):
            command, words = command.commands[rest[words]], words + 1
        return [*before, *rest[:words], *flags, *rest[words:]]

    def invoke(self, ctx: Any) -> Any:
        """Runs the program. A closed pipe (`shardqa ask … | head -1`) is no fault; typer itself would exit with 1."""
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for what is flushed at the end
            raise typer.Exit(BROKEN_PIPE) from None
        return result

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Writes one screen: the groups, and the first clause of each verb's help."""
        formatter.write(f"Usage: shardqa [OPTIONS] COMMAND [ARGS]...\n\n{self.help}\n")
        for group, verbs in GROUPS.items():
            formatter.write("\n")
            for i, (name, verb) in enumerate(verbs.items()):
                clause = FIRST_CLAUSE.match(summary_of(*verb))
                text = textwrap.shorten(clause[0] if clause else "", WIDTH - 23, placeholder=" …")
                formatter.write(f"{'' if i else group:<10} {name:<11} {text}\n")
        options = ", ".join("/".join(param.opts) for param in self.get_params(ctx))
        listed = textwrap.fill(f"Options: {options}", WIDTH, break_on_hyphens=False)
        formatter.write(f"\n{listed}\n'shardqa COMMAND --help' shows a command's own, with an example.\n")

    def shell_complete(self, ctx: Any, incomplete: str) -> Any:
        with self._described():
            return super().shell_complete(ctx, incomplete)

    @contextmanager
    def _described(self) -> Iterator[None]:
        """Puts names and help in place of the commands, so that listing the verbs imports none."""
        whole = self.commands
        self.commands = {name: TyperCommand(name, help=summary_of(*verb)) for name, verb in VERBS.items()}
        try:
            yield
        finally:
            self.commands = whole


def _ahead(args: list[str]) -> tuple[list[str], list[str], list[str]]:
    """Returns the program's own options wherever they stand, an empty list, and the other words."""
    own, rest = list[str](), list(args)
    last = rest.index("--") if "--" in rest else len(rest)
    for n in reversed(range(last)):
        size = 1 if rest[n] in ("-q", "--quiet") or rest[n].startswith("--color=") else 2 * (rest[n] == "--color")
        own[:0] = rest[n : n + size]
        del rest[n : n + size]
    return own, [], rest


class _Commands(UserDict[str, Any]):
    def __getitem__(self, name: str) -> Any:
        if isinstance(self.data[name], tuple):
            self.data[name] = _command(name, *self.data[name])
        return self.data[name]


def _command(name: str, module: str, member: str) -> Any:
    try:
        verb = getattr(import_module(f"shardqa.cli.{module}"), member)
    except ModuleNotFoundError as fault:
        sys.exit(extras.missing(f"'shardqa {name}'", fault, "worker"))
    holder = typer.Typer(add_completion=False)
    if isinstance(verb, typer.Typer):
        holder.add_typer(verb, name=name)
    else:
        holder.command(name)(verb)
    group: Any = typer.main.get_group(holder)
    for _, command in leaves(group.commands[name], name):
        command.epilog = f"Exit codes: {'; '.join(f'{code} {meaning}' for code, meaning in EXIT_CODES.items())}."
    spell_switches(group.commands[name])
    return group.commands[name]


def spell_switches(command: Any) -> None:
    """Takes `<bool>` from the help of switches, which have no value."""
    for param in command.get_params(typer.Context(command, help_option_names=HELP)):
        if getattr(param, "is_flag", False):
            param.metavar = ""
    for below in getattr(command, "commands", {}).values():
        spell_switches(below)


def leaves(command: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """Yields all commands below one, with their names; itself where there are none."""
    below = getattr(command, "commands", None)
    if below is None:
        yield name, command
        return
    for word in below:
        yield from leaves(below[word], f"{name} {word}".strip())
