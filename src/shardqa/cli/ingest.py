"""`shardqa ingest`: documents in."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from shardqa import keys
from shardqa.cli.connection import (
    CorpusOption,
    JsonOption,
    PasswordOption,
    RedisOption,
    UserOption,
    settings_of,
    with_engine,
)
from shardqa.cli.output import NOTHING, PARTLY, out, print_json, say
from shardqa.cli.progress import showing
from shardqa.engine import Engine
from shardqa.loader import formats
from shardqa.loader.files import SourceFiles
from shardqa.loader.ingest import Summary, ingest
from shardqa.loader.source_file import Lost, Skipped

SHOWN = 20  # skipped documents told one by one; the rest is counted by reason
PUT_SECONDS = 300.0  # one document of the largest size takes a while to split and tokenise


def ingest_(
    paths: Annotated[list[Path], typer.Argument(help=f"Files and folders: {formats.TOLD}; also .gz.")],
    corpus: CorpusOption = None,
    prefix: Annotated[
        str, typer.Option("--prefix", metavar="NAME/", help="Begin every id with this, to keep two folders apart.")
    ] = "",
    replace: Annotated[
        bool, typer.Option("--replace", help="Take the place of documents of the same id that came from elsewhere.")
    ] = False,
    follow_links: Annotated[
        bool, typer.Option("--follow-links", help="Read what links in folders lead to, wherever that is.")
    ] = False,
    as_json: JsonOption = False,
    redis: RedisOption = None,
    user: UserOption = None,
    password: PasswordOption = None,
) -> None:
    """Put documents into a corpus; returns when they are searchable. Running it again goes on where it stopped.

    A file is a document named by its path below the folder given; mailboxes, archives, csv (a row is a document),
    jsonl, SQuAD's json and a txt file of '# Title' lines hold many. What can't be read, or not all of it, is told with
    the reason, and the exit code is 4 then.

    Example: shardqa ingest handbook/ notes.jsonl.gz --corpus handbook-2026
    """
    settings = settings_of(redis, user, password, corpus=corpus, timeout=PUT_SECONDS)
    keys.check_corpus(settings.corpus)
    reading = SourceFiles(paths, prefix, follow_links)
    summary = with_engine(settings, lambda engine: with_progress(engine, reading, settings.corpus, replace))
    if as_json:
        print_json({**asdict(summary), "corpus": settings.corpus, "mb_per_minute": round(summary.mb_per_minute, 3)})
    else:
        report(summary, settings.corpus)
    if summary.skipped or summary.lost:
        raise typer.Exit(PARTLY if summary.documents or summary.unchanged else NOTHING)


async def with_progress(engine: Engine, reading: SourceFiles, corpus: str, replace: bool = False) -> Summary:
    """`ingest`, telling how far it is."""
    with showing(corpus, reading.total) as show:
        return await ingest(engine, reading, corpus, show, replace)


def report(s: Summary, corpus: str) -> None:
    tell("skipped", s.reasons, s.skipped)
    tell("lost", s.losses, s.lost)
    partly = f", of some a part was lost: {s.lost} parts" if s.lost else ""
    out.print(
        f"corpus {corpus}: {s.documents} documents written, {s.unchanged} unchanged, {s.skipped} skipped{partly}",
        markup=False,
    )
    out.print(f"{s.passages} passages, {s.characters:,} characters in {s.seconds:.1f} s ({s.mb_per_minute:.1f} MB/min)")


def tell(what: str, reasons: Iterable[Skipped | Lost], total: int) -> None:
    """The first SHOWN one by one, the rest by reason."""
    listed = list(reasons)
    for one in listed[:SHOWN]:
        say(f"{what} {one.place}: {one.reason}")
    if total > SHOWN:
        kinds = Counter(one.reason.split(":")[0] for one in listed[SHOWN:])
        common = ", ".join(f"{count} x {reason}" for reason, count in kinds.most_common(5))
        say(f"{what} {total - SHOWN} more: {common}; --json lists up to {len(listed)}")
