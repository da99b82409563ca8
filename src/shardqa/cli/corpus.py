"""`shardqa corpus ls`, `set` and `rm`: the corpora, and their switches."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer
from pydantic import ValidationError

from shardqa.cli import completion
from shardqa.cli.connection import with_engine
from shardqa.cli.faults import WrongSetting
from shardqa.cli.options import JsonOption, OneCorpusOption, Target, on_cluster
from shardqa.cli.output import counted, end, print_json, print_table, report, say
from shardqa.engine import Engine
from shardqa.engine.catalogue import TRIGGERS, Switch
from shardqa.engine.corpus_words import check
from shardqa.http_schema import CorpusWords, Pin
from shardqa.schema import CorpusInfo, Dropping

app = typer.Typer(name="corpus", help="Corpora: list, switch, remove.", no_args_is_help=True)

VALUES = {"on": True, "off": False}
CHOICES = {f"{switch}={word}": (switch, is_on) for switch in TRIGGERS for word, is_on in VALUES.items()}
KEEP = "keep_files"
KEPT = [f"{KEEP}={word}" for word in VALUES]


def _completed(incomplete: str) -> list[str]:
    return [choice for choice in (*CHOICES, *KEPT) if choice.startswith(incomplete)]


@app.command("ls")
@on_cluster
def ls(target: Target, as_json: JsonOption = False) -> None:
    """A table of the corpora: their sizes, vectors and languages. Exits with 1 where there are none.

    Example: shardqa corpus ls
    """
    answer = with_engine(target.settings(), lambda engine: engine.catalogue.corpora())
    if as_json:
        print_json(answer.model_dump(mode="json"))
    else:
        columns = ("name", "documents", "passages", "encoded", "languages", "characters", "bytes")
        print_table(columns, [_row(one) for one in answer.corpora])
    end(answer.failed, bool(answer.corpora))


def _row(corpus: CorpusInfo) -> tuple[str | int, ...]:
    vectors, languages = "-" if corpus.encoded is None else corpus.encoded, "on" if corpus.languages else "off"
    return corpus.name, corpus.documents, corpus.passages, vectors, languages, corpus.characters, corpus.bytes


@app.command("set")
@on_cluster
def set_(
    target: Target,
    corpus: OneCorpusOption,
    choices: Annotated[
        list[str],
        typer.Argument(
            metavar="NAME=on|off|FILE...",
            help="'keep_files': files are kept beside their texts, on by default. "
            "'bridges': titles that the first passages name are followed. 'dense': passages have vectors, where "
            "the cluster has an encoder, and are ranked by them, too. Both are on by default. 'languages': the pair of "
            "many languages reads the corpus, off by default. 'synonyms': a file of "
            "lines 'pto, paid time off' (both ways) or 'k8s => kubernetes'. 'pins': lines of JSON, each a question, "
            "a document and the quote of it that answers.",
            autocompletion=_completed,
        ),
    ],
    as_json: JsonOption = False,
) -> None:
    """Turn bridges, vectors or the keeping of files off, or on again; give a corpus synonyms or pinned answers.

    Example: shardqa corpus set bridges=off dense=off --corpus part-numbers
    """
    files = {name: READ[name](file) for name, _, file in (one.partition("=") for one in choices) if name in READ}
    keeping = {name: VALUES[word] for name, _, word in (one.partition("=") for one in choices if one in KEPT)}
    choice = _chosen([one for one in choices if one.partition("=")[0] not in READ and one not in KEPT])

    async def work(engine: Engine) -> list[str]:
        for name, is_on in choice.items():
            await engine.catalogue.switch(corpus, name, is_on)
        if files or keeping:
            own = await engine.words.stored(corpus) or CorpusWords()
            words = check(own.model_copy(update={**files, **keeping}))
            await engine.words.store(corpus, words)
            return await engine.words.unmatched(corpus, words) if files else []
        return []

    for question in with_engine(target.settings(), work):
        say(f"warning: the document pinned to {question!r} has no such quote: the question is answered without it")
    counts = {name: len(lines) for name, lines in files.items()}
    switches = {str(name): is_on for name, is_on in (*choice.items(), *keeping.items())}
    words = [f"{name} {'on' if is_on else 'off'}" for name, is_on in switches.items()]
    words += [f"{count} {name}" for name, count in counts.items()]
    report(as_json, {"corpus": corpus, **switches, **counts}, f"corpus {corpus}: {', '.join(words)}")


def _synonyms(file: str) -> list[str]:
    return [line for one in Path(file).read_text("utf-8").splitlines() if (line := one.partition("#")[0].strip())]


def _pins(file: str) -> list[Pin]:
    """Reads pinned answers from a file of JSON. Raises WrongSetting."""
    try:
        return [Pin.model_validate_json(line) for line in Path(file).read_text("utf-8").splitlines() if line.strip()]
    except ValidationError as error:
        first = error.errors()[0]
        raise WrongSetting(
            f'{file}: {first["msg"]}; each line is {{"question": …, "document": ID, "quote": its words}}'
        ) from None


READ: dict[str, Callable[[str], list[Any]]] = {"synonyms": _synonyms, "pins": _pins}
"""What a corpus takes from a file, in place of what it has; an empty one takes that away."""


def _chosen(choices: list[str]) -> dict[Switch, bool]:
    """Returns the switches of the command line. Raises WrongSetting before anything is changed."""
    switches: dict[Switch, bool] = {}
    for choice in choices:
        if choice not in CHOICES:
            names = ", ".join([*CHOICES, *KEPT, *(f"{name}=FILE" for name in READ)])
            raise WrongSetting(f"{choice[:60]!r} is no choice of a corpus; there are {names}")
        switch, is_on = CHOICES[choice]
        if switch in switches:
            raise WrongSetting(f"{switch!r} stands twice; say {switch}=on or {switch}=off")
        switches[switch] = is_on
    return switches


@app.command()
@on_cluster
def rm(
    target: Target,
    name: Annotated[str | None, typer.Argument(help="Name of the corpus.", autocompletion=completion.corpora)] = None,
    corpus: OneCorpusOption = "",
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Don't ask for confirmation.")] = False,
    wait: Annotated[bool, typer.Option("--wait", help="Return when the last document is removed.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Remove a corpus with all its documents. It is hidden at once; the shards delete it in the background.

    Example: shardqa corpus rm handbook-2025 --yes --wait
    """
    settings = target.settings()
    if bool(name) == bool(corpus):
        raise WrongSetting("name one corpus: shardqa corpus rm NAME")
    corpus = name or corpus
    if not yes:
        if not sys.stdin.isatty():
            raise WrongSetting("there is no terminal to confirm on; add --yes")
        typer.confirm(f"Remove the corpus {corpus} with all its documents?", abort=True, err=True)

    async def work(engine: Engine) -> Dropping:
        dropping = await engine.catalogue.drop(corpus)
        if wait and not dropping.done:
            async for _ in engine.catalogue.dropping(corpus):
                pass
            return dropping.model_copy(update={"removed": dropping.documents, "done": True})
        return dropping

    outcome = with_engine(settings, work)
    line = f"removed {corpus}: {outcome.removed:,} of {counted(outcome.documents, 'document')} gone"
    report(as_json, outcome.model_dump(mode="json"), line)
