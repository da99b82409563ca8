"""A corpus kept equal to files: what is new is put, what is unchanged is skipped, what has gone is removed."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from shardqa.engine import Engine
from shardqa.errors import BadDocument, UnknownCorpus
from shardqa.files.folders import SourceFiles
from shardqa.files.known import FileRead, KnownFiles
from shardqa.loader.ingest import Progress, ingest
from shardqa.loader.moments import Source
from shardqa.loader.summary import Summary


@dataclass(frozen=True, slots=True)
class SyncOptions:
    paths: Sequence[Path]
    corpus: str
    prefix: str = ""
    replace: bool = False
    follow_links: bool = False
    prune: bool = False
    again: bool = False  # every file is read, known or not
    ocr: bool = False  # text in pictures is recognized


class Reading(Source, Protocol):
    """A source that tells what it has read: `SourceFiles`, `WebPages`."""

    read: dict[str, FileRead]  # by origin
    passed_over: int  # documents of what has not changed


class PageReading(Reading, Protocol):
    """A source of the web: `WebPages`, `Paperless`."""

    def has_gone(self, id_: str, origin: str, /) -> bool: ...


async def sync(
    engine: Engine, reading: SourceFiles, options: SyncOptions, memory: KnownFiles, progress: Progress
) -> Summary:
    """Passes over the files of `reading` once. Raises what `ingest` does; BadDocument for an empty folder to prune."""
    if options.prune:
        _check_roots(options, reading)
    summary = await refresh(engine, reading, options, memory, progress)
    if options.prune:
        summary.removed = await _prune(engine, reading, options)
    return summary


async def sync_pages(
    engine: Engine, reading: PageReading, options: SyncOptions, memory: KnownFiles, progress: Progress
) -> Summary:
    """Makes one pass over pages of the web. Raises what `ingest` raises."""
    summary = await refresh(engine, reading, options, memory, progress)
    if options.prune:
        origins = await _listed(engine, options.corpus)
        surplus = [
            id_ for id_, origin in origins.items() if id_.startswith(options.prefix) and reading.has_gone(id_, origin)
        ]
        summary.removed = await _delete(engine, options.corpus, surplus)
    return summary


async def refresh(
    engine: Engine, reading: Reading, options: SyncOptions, memory: KnownFiles, progress: Progress
) -> Summary:
    """Puts new documents, and remembers them; removes nothing. Raises what `ingest` raises."""
    origins = await _listed(engine, options.corpus) if len(memory) and not options.again else {}
    memory.trust(origins)
    refusals = set[str]()
    summary = await ingest(engine, reading, options.corpus, progress, options.replace, refusals.add)
    summary.unchanged += reading.passed_over
    memory.learn(reading.read, refusals)
    memory.save()
    return summary


async def _listed(engine: Engine, corpus: str) -> dict[str, str]:
    try:
        return {document.id: document.origin async for document in engine.catalogue.every_document(corpus)}
    except UnknownCorpus:
        return {}


def _check_roots(options: SyncOptions, reading: SourceFiles) -> None:
    """Raises BadDocument for an empty folder: it is more often not mounted than emptied."""
    for path in options.paths:
        if path.is_dir() and not reading.has_files(path):
            raise BadDocument(
                f"{path} holds no file, so --prune would remove all that came from it; 'corpus rm' ends a corpus"
            )


async def _prune(engine: Engine, reading: SourceFiles, options: SyncOptions) -> int:
    roots = _roots(options)
    surplus = [
        id_
        for id_, origin in (await _listed(engine, options.corpus)).items()
        if id_.startswith(options.prefix) and _is_below(origin, roots) and _has_gone(id_, origin, reading)
    ]
    return await _delete(engine, options.corpus, surplus)


async def _delete(engine: Engine, corpus: str, ids: Sequence[str]) -> int:
    for id_ in ids:
        await engine.documents.delete(corpus, id_)
    return len(ids)


def _roots(options: SyncOptions) -> list[str]:
    return [os.path.abspath(path) for path in options.paths]


def _is_below(origin: str, roots: Sequence[str]) -> bool:
    return any(origin == root or origin.startswith(root.rstrip("/") + "/") for root in roots)


def _has_gone(id_: str, origin: str, reading: SourceFiles) -> bool:
    """Returns whether a file is gone, or no longer holds this document. One that can't be read keeps its documents."""
    read = reading.read.get(origin)
    if read is not None:
        return read.is_complete and id_ not in read.ids
    return not os.path.lexists(origin)
