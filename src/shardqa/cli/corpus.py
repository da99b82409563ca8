"""`shardqa corpus ls`, `set` and `rm`: which corpora there are, and what each does without."""

import sys
from typing import Annotated

import typer

from shardqa.cli.connection import with_engine
from shardqa.cli.faults import WrongSetting
from shardqa.cli.options import JsonOption, OneCorpusOption, Target, on_cluster
from shardqa.cli.output import counted, end, print_json, print_table, report
from shardqa.cli.retokenise import retokenise
from shardqa.engine import Engine
from shardqa.engine.catalogue import TRIGGERS, Switch
from shardqa.schema import CorpusInfo, Dropping

app = typer.Typer(name="corpus", help="Corpora: list, switch, cut anew, remove.", no_args_is_help=True)
app.command("retokenise")(retokenise)

VALUES = {"on": True, "off": False}
CHOICES = {f"{switch}={word}": (switch, is_on) for switch in TRIGGERS for word, is_on in VALUES.items()}


def _completed(incomplete: str) -> list[str]:
    return [choice for choice in CHOICES if choice.startswith(incomplete)]


@app.command("ls")
@on_cluster
def ls(target: Target, as_json: JsonOption = False) -> None:
    """A table of the corpora: documents, passages, vectors, characters, bytes. Exits with 1 where there are none.

    Example: shardqa corpus ls
    """
    listed = with_engine(target.settings(), lambda engine: engine.catalogue.corpora())
    if as_json:
        print_json(listed.model_dump(mode="json"))
    else:
        columns = ("name", "documents", "passages", "encoded", "characters", "bytes")
        print_table(columns, [_row(one) for one in listed.corpora])
    end(listed.failed, bool(listed.corpora))


def _row(corpus: CorpusInfo) -> tuple[str | int, ...]:
    encoded = "-" if corpus.encoded is None else corpus.encoded
    return corpus.name, corpus.documents, corpus.passages, encoded, corpus.characters, corpus.bytes


@app.command("set")
@on_cluster
def set_(
    target: Target,
    corpus: OneCorpusOption,
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

    Example: shardqa corpus set bridges=off dense=off --corpus part-numbers
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


@app.command()
@on_cluster
def rm(
    target: Target,
    corpus: OneCorpusOption,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Don't ask for confirmation.")] = False,
    wait: Annotated[bool, typer.Option("--wait", help="Return when the last document is removed.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Remove a corpus with all its documents. It is hidden at once; the shards delete it in the background.

    Example: shardqa corpus rm --corpus handbook-2025 --yes --wait
    """
    settings = target.settings()
    if not yes:
        if not sys.stdin.isatty():
            raise WrongSetting("there is no terminal to confirm on; add --yes")
        typer.confirm(f"Remove the corpus {corpus} with all its documents?", abort=True, err=True)

    async def work(engine: Engine) -> Dropping:
        begun = await engine.catalogue.drop(corpus)
        if wait and not begun.done:
            async for _ in engine.catalogue.dropping(corpus):
                pass
            return begun.model_copy(update={"removed": begun.documents, "done": True})
        return begun

    done = with_engine(settings, work)
    line = f"removed {corpus}: {done.removed:,} of {counted(done.documents, 'document')} gone"
    report(as_json, done.model_dump(mode="json"), line)
