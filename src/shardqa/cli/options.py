"""Options and arguments that several commands have, each written down once."""

import functools
import inspect
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Annotated, Any, NamedTuple, Self, get_type_hints
from urllib.parse import urlencode

import typer

from shardqa.address import DEFAULT_PORT
from shardqa.cli import completion
from shardqa.cli.connection import settings_of
from shardqa.cli.faults import WrongSetting
from shardqa.config import Settings

TARGET_OPTIONS = {
    "redis": Annotated[
        str | None,
        typer.Option(
            "--redis",
            "-u",
            envvar="SHARDQA_REDIS",
            metavar="HOST:PORT,…",
            help="Any nodes of the cluster; redis://… and rediss://… too.",
        ),
    ],
    "user": Annotated[str | None, typer.Option("--user", envvar="SHARDQA_USER", metavar="NAME", help="ACL user.")],
    "password": Annotated[
        str | None,
        typer.Option("--password", "--pass", "-a", envvar="SHARDQA_PASSWORD", metavar="SECRET", help="Its password."),
    ],
    "host": Annotated[str | None, typer.Option("--host", metavar="HOST", help="redis-cli's -h, in place of --redis.")],
    "port": Annotated[int | None, typer.Option("--port", "-p", min=1, max=65_535, help="As redis-cli has it.")],
    "tls": Annotated[bool, typer.Option("--tls", help="Speak TLS.")],
    "cacert": Annotated[Path | None, typer.Option("--cacert", metavar="FILE", help="Who signs nodes' certificates.")],
}
DataOption = Annotated[Path, typer.Option("--data", envvar="SHARDQA_DATA", metavar="DIR", help="Local cluster's data.")]
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
    str | None, typer.Option("--filter", metavar="JSON", help="Documents that may be found, by title and metadata.")
]
SourceOption = Annotated[
    list[str] | None,
    typer.Option("--source", metavar="PREFIX", help="Documents whose source begins so, as those of a folder do."),
]


KOption = Annotated[int | None, typer.Option("--k", help="Passages to read.", show_default=False)]


class Target(NamedTuple):
    """The cluster and the user of a command; None leaves it to the settings."""

    redis: str | None
    user: str | None
    password: str | None

    @classmethod
    def of(
        cls,
        redis: str | None,
        user: str | None,
        password: str | None,
        host: str | None,
        port: int | None,
        tls: bool | None,
        cacert: Path | None,
    ) -> Self:
        """Makes a target of --redis, or of redis-cli's flags for its parts. Raises WrongSetting."""
        if host is not None or port is not None:
            redis = f"{host or '127.0.0.1'}:{port or DEFAULT_PORT}"
        if tls or cacert is not None:
            if redis is None or "://" in redis:
                raise WrongSetting("--tls and --cacert want --host and --port, or --redis HOST:PORT")
            query = f"?{urlencode({'ssl_ca_certs': str(cacert)})}" if cacert is not None else ""
            redis = ",".join(f"rediss://{node.strip()}{query}" for node in redis.split(","))
        return cls(redis, user, password)

    def settings(self, **others: Any) -> Settings:
        """Raises WrongSetting."""
        return settings_of(*self, **others)


def _options_of(group: Any) -> list[inspect.Parameter]:
    types = get_type_hints(group, include_extras=True)
    return [
        inspect.Parameter(one.name, inspect.Parameter.KEYWORD_ONLY, default=one.default, annotation=types[one.name])
        for one in fields(group)
    ]


def on_cluster(command: Callable[..., None]) -> Callable[..., None]:
    """Gives a command the options of TARGET_OPTIONS, which reach it as its parameter `target`.

    A parameter whose type is a dataclass stands for an option of each field.
    """
    signature = inspect.signature(command, eval_str=True)
    groups: dict[str, Any] = {
        name: one.annotation for name, one in signature.parameters.items() if is_dataclass(one.annotation)
    }
    own = [
        option
        for name, one in signature.parameters.items()
        if name != "target"
        for option in (_options_of(groups[name]) if name in groups else [one.replace(kind=one.KEYWORD_ONLY)])
    ]
    options = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=option)
        for name, option in TARGET_OPTIONS.items()
    ]

    @functools.wraps(command)
    def run(**values: Any) -> None:
        target = Target.of(**{name: values.pop(name) for name in TARGET_OPTIONS})
        for name, group in groups.items():
            values[name] = group(**{one.name: values.pop(one.name) for one in fields(group)})
        command(target, **values)

    run.__signature__ = signature.replace(parameters=[*own, *options])  # type: ignore[attr-defined]
    return run
