"""`shardqa ingest`: puts documents into a corpus."""

import asyncio
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

import typer

from shardqa import keys
from shardqa.cli import faults
from shardqa.cli.connection import with_engine
from shardqa.cli.faults import WrongSetting
from shardqa.cli.options import CorpusOption, JsonOption, Target, on_cluster
from shardqa.cli.output import NOTHING, PARTLY, counted, out, print_json, say
from shardqa.cli.progress import showing
from shardqa.engine import Engine
from shardqa.errors import ShardqaError
from shardqa.extras import need
from shardqa.files import formats
from shardqa.files.folders import STDIN, SourceFiles
from shardqa.files.known import KnownFiles, cache_of
from shardqa.files.source_file import TEXT_FIELD, Lost, Skipped
from shardqa.files.web import paperless
from shardqa.files.web.address import is_address
from shardqa.files.web.pages import MAX_PAGES, Bounds, WebPages
from shardqa.loader.ingest import Progress
from shardqa.loader.summary import Summary
from shardqa.loader.sync import Reading, SyncOptions, sync
from shardqa.schema import Document

PUT_SECONDS = 300.0  # one document of the largest size takes a while to split and tokenise


@dataclass(frozen=True, slots=True)
class IngestOptions:
    corpus: CorpusOption = None
    prefix: Annotated[str, typer.Option("--prefix", metavar="NAME/", help="Begins each id, to keep folders apart.")] = (
        ""
    )
    replace: Annotated[bool, typer.Option("--replace", help="Replace a document of the id from elsewhere.")] = False
    follow_links: Annotated[bool, typer.Option("--follow-links", help="Follow links, also out of the folders.")] = False
    prune: Annotated[bool, typer.Option("--prune", help="Remove documents whose files or pages have gone.")] = False
    watch: Annotated[bool, typer.Option("--watch", help="Keep running, ingest every change; Ctrl-C stops it.")] = False
    again: Annotated[bool, typer.Option("--again", help="Read unchanged files again, too.")] = False
    ocr: Annotated[bool, typer.Option("--ocr", help="Recognize text in pictures and scanned PDFs; slow.")] = False
    text_field: Annotated[
        str, typer.Option("--text-field", metavar="NAME", help="Where objects of json and jsonl have their text.")
    ] = TEXT_FIELD
    no_keep: Annotated[bool, typer.Option("--no-keep", help="Keep the text alone, not the file beside it.")] = False
    max_pages: Annotated[int, typer.Option("--max-pages", min=1, metavar="N", help="Pages at most.")] = MAX_PAGES
    follow: Annotated[bool, typer.Option("--follow", help="Read pages of the host that links lead to, too.")] = False
    depth: Annotated[int, typer.Option("--depth", min=1, metavar="N", help="Links that --follow follows at most.")] = 3
    allow_private: Annotated[
        bool, typer.Option("--allow-private", help="Read from private and local addresses, too.")
    ] = False
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Tell what would go in; asks no cluster.")] = False


@on_cluster
def ingest_(
    target: Target,
    paths: Annotated[
        list[str],
        typer.Argument(
            help=f"Files and folders: {formats.TOLD}; also .gz; - is lines of JSON on stdin. Or https://… of pages and "
            "sitemaps, or paperless+https://… of a paperless-ngx server."
        ),
    ],
    options: IngestOptions,
    as_json: JsonOption = False,
) -> None:
    """Put documents into a corpus; returns when they are searchable. Running it again goes on where it stopped.

    A file is a document named by its path below the folder given; mailboxes, archives, csv (a row is a document),
    jsonl, SQuAD's json and a txt file of '# Title' lines hold many. What can't be read, or not all of it, is told with
    the reason, and the exit code is 4 then.

    Unchanged files are skipped, by their size and time of change. An address is a page, or a
    sitemap of pages on the same host, or with --follow where links begin; robots.txt is obeyed.

    Example: shardqa ingest handbook/ notes.jsonl.gz --corpus handbook-2026
    """
    settings = target.settings(corpus=options.corpus, timeout=PUT_SECONDS)
    keys.check_corpus(settings.corpus)
    urls = [path for path in paths if is_address(path)]
    names = ("prefix", "replace", "follow_links", "prune", "again", "ocr", "text_field", "no_keep")
    chosen = {name: getattr(options, name) for name in names}
    sync_options = SyncOptions([Path(path) for path in paths if path not in urls], settings.corpus, **chosen)
    if options.ocr:
        need("rapidocr", extra="ocr")
    if options.watch and STDIN in sync_options.paths:
        raise WrongSetting("stdin can't be watched; leave --watch or - out")
    if options.follow and not urls:
        raise WrongSetting("--follow is for addresses; a folder is read whole")
    if urls:
        _check_alone(options, bool(sync_options.paths))
    bounds = Bounds(options.allow_private, options.max_pages, links=options.depth if options.follow else 0)
    _web(urls, sync_options, None, bounds)  # what is no address, or not there, is told before anything is connected to
    _files(sync_options)
    if options.dry_run:
        summary = _read_only(sync_options, as_json)
    elif urls:
        summary = with_engine(settings, lambda engine: _web_pass(engine, sync_options, urls, bounds, as_json))
    else:
        summary = with_engine(settings, lambda engine: _passes(engine, sync_options, options.watch, as_json))
    if summary.skipped or summary.lost:
        raise typer.Exit(PARTLY if summary.documents or summary.unchanged else NOTHING)


def _files(options: SyncOptions, memory: KnownFiles | None = None) -> SourceFiles:
    """Returns the reading of files. Raises BadDocument for what is not there."""
    ocr, text_field = options.ocr, options.text_field
    return SourceFiles(options.paths, options.prefix, options.follow_links, memory, ocr=ocr, text_field=text_field)


def _read_only(options: SyncOptions, as_json: bool) -> Summary:
    summary = Summary()
    for item in _files(options):
        if isinstance(item, Document):
            summary.documents += 1
            summary.characters += len(item.text)
            if not as_json:
                print(item.id)
        else:
            summary.note(item)
    if as_json:
        print_json({**asdict(summary), "corpus": options.corpus})
    else:
        tell("skipped", summary.reasons, summary.skipped)
        tell("lost", summary.losses, summary.lost)
        say(f"would write {counted(summary.documents, 'document')}, {counted(summary.characters, 'character')}")
    return summary


def _check_alone(options: IngestOptions, has_files: bool) -> None:
    """Checks the options of addresses. Raises WrongSetting for options of files, which mean nothing there."""
    unfit = [name for name in ("watch", "follow_links", "ocr", "no_keep", "dry_run") if getattr(options, name)]
    if unfit:
        name = unfit[0].replace("_", "-")
        raise WrongSetting(f"--{name} is for files and folders; leave it out for addresses")
    if has_files:
        raise WrongSetting("files and addresses in one command; give them in two")


def _web(urls: list[str], options: SyncOptions, memory: KnownFiles | None, bounds: Bounds) -> Reading:
    """Returns the reading of pages or of a server. Raises BadDocument for what is no address."""
    server = paperless.source(urls, os.environ.get(paperless.TOKEN, ""), options.prefix, memory, bounds)
    return server or WebPages(urls, options.prefix, memory, bounds)


async def _web_pass(engine: Engine, options: SyncOptions, urls: list[str], bounds: Bounds, as_json: bool) -> Summary:
    memory = KnownFiles(cache_of(engine.settings.redis, options.corpus, options.prefix))
    reading = _web(urls, options, None if options.again else memory, bounds)
    with showing(options.corpus, None) as show, _told_when_stopped(show) as note:
        summary = await sync(engine, reading, options, memory, note)
    _tell_summary(summary, options.corpus, as_json)
    return summary


async def _passes(engine: Engine, options: SyncOptions, watch: bool, as_json: bool) -> Summary:
    """Makes one pass; with `watch` another one after each change, without end."""
    summary = await _one_pass(engine, options, as_json)
    if watch:
        from watchfiles import awatch

        say(f"watching {', '.join(map(str, options.paths))}; Ctrl-C ends it")
        async for _ in awatch(*options.paths):
            summary = await _one_pass(engine, options, as_json)
            _end_where_asked()
    return summary


def _end_where_asked() -> None:
    """Raises CancelledError after a Ctrl-C that came within a pass: redis-py's reads with a timeout may swallow it."""
    task = asyncio.current_task()
    if task is not None and task.cancelling():
        raise asyncio.CancelledError


async def _one_pass(engine: Engine, options: SyncOptions, as_json: bool) -> Summary:
    memory = KnownFiles(cache_of(engine.settings.redis, options.corpus, options.prefix))
    reading = _files(options, None if options.again else memory)
    with showing(options.corpus, reading.total) as show, _told_when_stopped(show) as note:
        summary = await sync(engine, reading, options, memory, note)
    _tell_summary(summary, options.corpus, as_json)
    return summary


@contextmanager
def _told_when_stopped(show: Progress) -> Iterator[Progress]:
    """Yields a callback for the summary after each document; a Ctrl-C says what was written, which is awaited."""
    latest = Summary()

    def note(summary: Summary) -> None:
        nonlocal latest
        latest = summary
        show(summary)

    try:
        yield note
    except (asyncio.CancelledError, ShardqaError) as stop:
        is_some = latest.documents + latest.unchanged > 0
        if is_some or isinstance(stop, asyncio.CancelledError):
            task = asyncio.current_task()
            least = "at least " if task is not None and task.cancelling() > 1 else ""  # the second did not wait
            counts = f"{counted(latest.documents, 'document')} written, {latest.unchanged:,} unchanged"
            say(f"stopped: {least}{counts}; what is written stays, and the same command goes on from there")
        if is_some and isinstance(stop, ShardqaError):
            faults.report(stop)
            raise typer.Exit(PARTLY) from stop
        raise


def _tell_summary(summary: Summary, corpus: str, as_json: bool) -> None:
    for warning in summary.warnings:
        say(f"warning: {warning}")
    if as_json:
        rate = round(summary.mb_per_minute, 3)
        print_json({**asdict(summary), "corpus": corpus, "mb_per_minute": rate})
    else:
        report(summary, corpus)


def report(s: Summary, corpus: str) -> None:
    tell("skipped", s.reasons, s.skipped)
    tell("lost", s.losses, s.lost)
    partly = f", of some a part was lost: {counted(s.lost, 'part')}" if s.lost else ""
    textless = ", ".join(f"{kind} ({count:,})" for kind, count in sorted(s.textless.items()))
    removals = f", {s.removed} removed" if s.removed else ""
    counts = f"{counted(s.documents, 'document')} written, {s.unchanged:,} unchanged, {s.skipped:,} skipped"
    out.print(f"corpus {corpus}: {counts}{removals}{partly}", markup=False)
    if textless:
        out.print(f"passed by: {textless}", markup=False)
    size = f"{counted(s.passages, 'passage')}, {counted(s.characters, 'character')}"
    out.print(f"{size} in {s.seconds:.1f} s ({s.mb_per_minute:.1f} MB/min)")


def tell(what: str, reasons: Iterable[Skipped | Lost], total: int) -> None:
    """Prints the places and reasons that were kept, each on a line, and how many others there are."""
    lines = list(reasons)
    for one in lines:
        say(f"{what} {one.place}: {one.reason}")
    if total > len(lines):
        say(f"{what} {total - len(lines):,} more, of which no reason is kept")
