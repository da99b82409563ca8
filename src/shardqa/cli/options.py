"""Options and arguments that several commands have, each written down once."""

import functools
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from shardqa.cli import completion
from shardqa.cli.connection import settings_of
from shardqa.config import Settings

TARGET_OPTIONS = {
    "redis": Annotated[
        str | None,
        typer.Option(
            "--redis",
            envvar="SHARDQA_REDIS",
            metavar="HOST:PORT,…",
            help="Any nodes of the cluster; redis://… and rediss://… too.",
        ),
    ],
    "user": Annotated[
        str | None, typer.Option("--user", envvar="SHARDQA_USER", metavar="NAME", help="ACL user of Redis.")
    ],
    "password": Annotated[
        str | None,
        typer.Option("--password", envvar="SHARDQA_PASSWORD", metavar="SECRET", help="Password of that user."),
    ],
}
DataOption = Annotated[
    Path,
    typer.Option("--data", envvar="SHARDQA_DATA", metavar="DIR", help="Folder of the local cluster's data."),
]
CorpusOption = Annotated[
    str | None,
    typer.Option(
        "--corpus",
        envvar="SHARDQA_CORPUS",
        metavar="NAME",
        help="Corpus of documents, like 'handbook-2026'.",
        autocompletion=completion.corpora,
    ),
]
# Where a corpus is changed as a whole, no setting names it.
OneCorpusOption = Annotated[
    str, typer.Option("--corpus", metavar="NAME", help="Name of the corpus.", autocompletion=completion.corpora)
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]
FilterOption = Annotated[
    str | None,
    typer.Option("--filter", metavar="JSON", help="Documents that may be found, by title and metadata."),
]


KOption = Annotated[int | None, typer.Option("--k", help="Passages to read.", show_default=False)]


class Target(NamedTuple):
    """The cluster that a command is for, and the user that it comes as; None is what the settings say."""

    redis: str | None
    user: str | None
    password: str | None

    def settings(self, **others: Any) -> Settings:
        """Raises WrongSetting."""
        return settings_of(*self, **others)


def on_cluster(command: Callable[..., None]) -> Callable[..., None]:
    """Gives a command the options --redis, --user and --password, which reach it as its parameter `target`."""
    signature = inspect.signature(command, eval_str=True)
    own = [one.replace(kind=one.KEYWORD_ONLY) for name, one in signature.parameters.items() if name != "target"]
    options = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=option)
        for name, option in TARGET_OPTIONS.items()
    ]

    @functools.wraps(command)
    def run(**values: Any) -> None:
        target = Target(**{name: values.pop(name) for name in TARGET_OPTIONS})
        command(target, **values)

    run.__signature__ = signature.replace(parameters=[*own, *options])  # type: ignore[attr-defined]
    return run
