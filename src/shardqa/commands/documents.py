"""`shardqa ingest` and `shardqa delete`: documents in, documents out."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

from shardqa import keys
from shardqa.commands.connection import (
    CorpusOption,
    JsonOption,
    PasswordOption,
    RedisOption,
    UserOption,
    settings_of,
    with_engine,
)
from shardqa.commands.output import err, print_json, say
from shardqa.engine import Engine
from shardqa.errors import UnknownDocument
from shardqa.loader.files import Reading
from shardqa.loader.ingest import Summary, ingest
from shardqa.loader.opened import Skipped

SHOWN = 20  # skipped documents told one by one; the rest is counted by reason
PUT_SECONDS = 300.0  # one document of the largest size takes a while to split and tokenise


def ingest_(
    paths: Annotated[list[Path], typer.Argument(help="Files and folders: txt md html jsonl json (SQuAD), also .gz.")],
    corpus: CorpusOption = None,
    as_json: JsonOption = False,
    redis: RedisOption = None,
    user: UserOption = None,
    password: PasswordOption = None,
) -> None:
    """Put documents into a corpus; returns when they are searchable. Running it again goes on where it stopped.

    A file is a document named by its path; a txt file of '# Title' lines, a jsonl and a SQuAD json hold many.

    Example: shardqa ingest handbook/ notes.jsonl.gz --corpus handbook-2026
    """
    settings = settings_of(redis, user, password, corpus=corpus, timeout=PUT_SECONDS)
    keys.check_corpus(settings.corpus)
    reading = Reading(paths)
    summary = with_engine(settings, lambda engine: with_progress(engine, reading, settings.corpus))
    if as_json:
        print_json({**asdict(summary), "corpus": settings.corpus, "mb_per_minute": round(summary.mb_per_minute, 3)})
    else:
        report(summary, settings.corpus)
    if summary.skipped and not summary.documents and not summary.unchanged:
        raise typer.Exit(1)


async def with_progress(engine: Engine, reading: Reading, corpus: str) -> Summary:
    """`ingest` with a bar on the terminal: documents, MB of text a minute, time left."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TextColumn("{task.fields[documents]} documents, {task.fields[rate]:.1f} MB/min,"),
        TimeRemainingColumn(),
        TextColumn("left"),
    )
    with Progress(*columns, console=err, disable=not err.is_terminal, transient=True) as bar:
        task = bar.add_task(corpus, total=max(reading.total, 1), documents=0, rate=0.0)

        def show(summary: Summary) -> None:
            bar.update(
                task,
                completed=reading.done(),
                documents=summary.documents + summary.unchanged,
                rate=summary.mb_per_minute,
            )

        return await ingest(engine, reading, corpus, show)


def report(s: Summary, corpus: str) -> None:
    tell_skipped(s.reasons, s.skipped)
    say(f"corpus {corpus}: {s.documents} documents written, {s.unchanged} unchanged, {s.skipped} skipped")
    say(f"{s.passages} passages, {s.characters:,} characters in {s.seconds:.1f} s ({s.mb_per_minute:.1f} MB/min)")


def tell_skipped(reasons: Iterable[Skipped], total: int) -> None:
    listed = list(reasons)
    for skipped in listed[:SHOWN]:
        say(f"skipped {skipped.place}: {skipped.reason}")
    if total > SHOWN:
        kinds = Counter(skipped.reason.split(":")[0] for skipped in listed[SHOWN:])
        common = ", ".join(f"{count} x {reason}" for reason, count in kinds.most_common(5))
        say(f"skipped {total - SHOWN} more: {common}; --json lists up to {len(listed)}")


def delete(
    ids: Annotated[list[str], typer.Argument(help="Document ids, as 'ask' shows them.")],
    corpus: CorpusOption = None,
    as_json: JsonOption = False,
    redis: RedisOption = None,
    user: UserOption = None,
    password: PasswordOption = None,
) -> None:
    """Delete documents with all that belongs to them: passages, tokens, cached answers.

    Example: shardqa delete lake-ysolde --corpus seeds
    """
    settings = settings_of(redis, user, password, corpus=corpus, timeout=PUT_SECONDS)

    async def work(engine: Engine) -> dict[str, bool]:
        return {id_: await engine.delete(settings.corpus, id_) for id_ in dict.fromkeys(ids)}

    deleted = with_engine(settings, work)
    if as_json:
        print_json({"corpus": settings.corpus, "deleted": deleted})
    for id_, was_there in deleted.items():
        if was_there and not as_json:
            say(f"deleted {id_}")
    missing = [id_ for id_, was_there in deleted.items() if not was_there]
    if missing:
        raise UnknownDocument(f"corpus {settings.corpus!r} has no document {', '.join(map(repr, missing))}")
