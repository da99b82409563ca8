"""`shardqa corpus set`: what a corpus has or does without."""

from typing import Annotated

import typer

from shardqa.cli.connection import with_engine
from shardqa.cli.faults import WrongSetting
from shardqa.cli.options import CorpusArgument, JsonOption, Target, on_cluster
from shardqa.cli.output import report
from shardqa.engine import Engine
from shardqa.engine.catalogue import TRIGGERS, Switch

app = typer.Typer(name="corpus", help="What a corpus has or does without.", no_args_is_help=True)

VALUES = {"on": True, "off": False}
CHOICES = {f"{switch}={word}": (switch, is_on) for switch in TRIGGERS for word, is_on in VALUES.items()}


def _completed(incomplete: str) -> list[str]:
    return [choice for choice in CHOICES if choice.startswith(incomplete)]


@app.callback()
def _group() -> None:
    """Keeps `set` a word of its own: typer would run the only command of an app without its name."""


@app.command("set")
@on_cluster
def set_(
    target: Target,
    corpus: CorpusArgument,
    choices: Annotated[
        list[str],
        typer.Argument(
            metavar="NAME=on|off...",
            help="'bridges': titles that the first passages name are followed. 'dense': passages have vectors, where "
            "the cluster has an encoder, and are ranked by them, too. Both are on by default.",
            autocompletion=_completed,
        ),
    ],
    as_json: JsonOption = False,
) -> None:
    """Turn bridges between documents or vectors of a corpus off, or on again; both are on by default.

    Example: shardqa corpus set part-numbers bridges=off dense=off
    """
    chosen = _chosen(choices)

    async def work(engine: Engine) -> None:
        for name, is_on in chosen.items():
            await engine.catalogue.switch(corpus, name, is_on)

    with_engine(target.settings(), work)
    words = ", ".join(f"{name} {'on' if is_on else 'off'}" for name, is_on in chosen.items())
    report(as_json, {"corpus": corpus, **chosen}, f"corpus {corpus}: {words}")


def _chosen(choices: list[str]) -> dict[Switch, bool]:
    """Raises WrongSetting before anything is changed."""
    chosen: dict[Switch, bool] = {}
    for choice in choices:
        if choice not in CHOICES:
            raise WrongSetting(f"{choice[:60]!r} is no choice of a corpus; there are {', '.join(CHOICES)}")
        switch, is_on = CHOICES[choice]
        if switch in chosen:
            raise WrongSetting(f"{switch!r} stands twice; say {switch}=on or {switch}=off")
        chosen[switch] = is_on
    return chosen
