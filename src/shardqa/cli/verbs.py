"""The verbs of `shardqa` and where each one's code is. A verb is imported when it is called: half of them need much."""

import sys
from collections import UserDict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from shardqa import extras
from shardqa.cli.output import EXIT_CODES


@dataclass(frozen=True, slots=True)
class Verb:
    module: str  # of shardqa.cli
    name: str  # of a function, or of an app that groups several
    help: str  # the first paragraph of what the command itself says


VERBS = {
    "up": Verb("up", "up", "Start a cluster with functions, reader and API on this machine."),
    "down": Verb("up", "down", "Stop the cluster and the API that run from --data. The data stays."),
    "demo": Verb(
        "demo",
        "demo",
        "Start everything, ingest the example documents, ask a question; then stay in the foreground like 'up'.",
    ),
    "status": Verb(
        "status",
        "status",
        "A table of the nodes: role, slots, passages, vectors, models, worker, writes, memory, streams, answers found.",
    ),
    "ingest": Verb(
        "ingest",
        "ingest_",
        "Put documents into a corpus; returns when they are searchable. Running it again goes on where it stopped.",
    ),
    "ask": Verb(
        "ask",
        "ask",
        "Ask a question; prints the answer in its sentence, its document, score and times. "
        "Exits with 1 without an answer.",
    ),
    "search": Verb(
        "corpora",
        "search",
        "The passages that rank best, with the question's words marked; no reader runs. Exits with 1 without any.",
    ),
    "corpora": Verb(
        "corpora",
        "corpora",
        "A table of the corpora: documents, passages, vectors, characters, bytes. Exits with 1 where there are none.",
    ),
    "ls": Verb("corpora", "ls", "A table of a corpus' documents: id, title, passages, bytes, source."),
    "show": Verb("corpora", "show", "Print a document's text; with --json, everything that is stored about it."),
    "rm": Verb("delete", "delete", "Delete documents with all that belongs to them: passages, tokens, cached answers."),
    "delete": Verb(
        "delete", "delete", "Delete documents with all that belongs to them: passages, tokens, cached answers."
    ),
    "drop": Verb(
        "corpora",
        "drop",
        "Drop a corpus with all its documents. It is hidden at once; the shards delete it in the background.",
    ),
    "retokenise": Verb(
        "retokenise",
        "retokenise",
        "Cut a corpus into passages and word pieces anew, on all shards, while it goes on answering. "
        "Unchanged ones stay.",
    ),
    "mcp": Verb(
        "mcp", "mcp", "Serve the Model Context Protocol on stdin and stdout: the tools ask, search, list and fetch."
    ),
    "calibrate": Verb(
        "calibrate",
        "calibrate",
        "Fit the scores of one corpus to questions of its own, say what that gains, and use them from now on.",
    ),
    "prepare": Verb(
        "prepare",
        "prepare",
        "Register the functions and store the reader on every shard of a cluster whose nodes have the module.",
    ),
    "doctor": Verb(
        "doctor",
        "doctor_",
        "Check this machine and the cluster. Every fault comes with its remedy. Exits with 1 when something is bad.",
    ),
    "backup": Verb(
        "backup",
        "backup",
        "Write documents, readers, functions, API keys and settings of a cluster into one file, with a checksum.",
    ),
    "restore": Verb(
        "backup",
        "restore_",
        "Read a backup into a cluster, of any number of shards; returns when its documents are searchable.",
    ),
    "module-path": Verb("prepare", "module_path", "Print the path of the Redis module, for loadmodule."),
    "config": Verb("config", "app", "What settings hold."),
    "keys": Verb("keys", "app", "Keys to the HTTP API: make, list, revoke."),
    "eval": Verb("eval", "app", "Measure retrieval and answers on a file of questions."),
    "bench": Verb("stages", "app", "Measure times."),  # stages.py adds its own command to those of bench.py
    "models": Verb("models", "app", "Keep models by name, and store them on a cluster."),
    "dense": Verb("dense", "app", "Find passages by what they mean, beside their words."),
    "gears": Verb("gears", "app", "Functions in Redis: run, list, watch, remove."),
    "corpus": Verb("corpus", "app", "What a corpus has or does without."),
}


class Verbs(TyperGroup):
    """The program's commands, each imported when it is looked up."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands = _Commands(VERBS)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        with self._described():
            super().format_help(ctx, formatter)

    def shell_complete(self, ctx: Any, incomplete: str) -> Any:
        with self._described():
            return super().shell_complete(ctx, incomplete)

    @contextmanager
    def _described(self) -> Iterator[None]:
        """Names and help alone: a list of the verbs imports none."""
        whole = self.commands
        self.commands = {name: TyperCommand(name, help=verb.help) for name, verb in VERBS.items()}
        try:
            yield
        finally:
            self.commands = whole


class _Commands(UserDict[str, Any]):
    def __getitem__(self, name: str) -> Any:
        found = self.data[name]
        if isinstance(found, Verb):
            found = self.data[name] = _command(name, found)
        return found


def _command(name: str, verb: Verb) -> Any:
    try:
        found = getattr(import_module(f"shardqa.cli.{verb.module}"), verb.name)
    except ModuleNotFoundError as fault:
        sys.exit(extras.missing(f"'shardqa {name}'", fault, "cli"))
    holder = typer.Typer(add_completion=False)
    if isinstance(found, typer.Typer):
        holder.add_typer(found, name=name)
    else:
        own = verb.name.rstrip("_")  # the example of a verb with two names is told with each
        holder.command(name, help=(found.__doc__ or "").replace(f"shardqa {own}", f"shardqa {name}"))(found)
    group: Any = typer.main.get_group(holder)
    whole = group.commands[name]
    for command in _leaves(whole):
        command.epilog = f"Exit codes: {'; '.join(f'{code} {meaning}' for code, meaning in EXIT_CODES.items())}."
        for param in command.params:
            if getattr(param, "is_flag", False):
                param.metavar = ""  # else its help has <bool>, as if it took a value
    return whole


def _leaves(command: Any) -> Iterator[Any]:
    below = getattr(command, "commands", None)
    if below is None:
        yield command
    for one in (below or {}).values():
        yield from _leaves(one)
