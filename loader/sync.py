"""A corpus kept equal to files: what is new is put, what is unchanged is skipped, what has gone is removed."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from shardqa.engine import Engine
from shardqa.errors import BadDocument, UnknownCorpus
from shardqa.files.folders import SourceFiles
from shardqa.files.known import FileRead, KnownFiles
from shardqa.loader.ingest import Progress, Source, ingest
from shardqa.loader.kept_files import KeptFiles
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
    text_field: str = "text"  # of objects of JSON
    no_keep: bool = False  # files on disk are not kept beside their texts


class Reading(Source, Protocol):
    """A source that tells what it has read, and what is no longer there: `SourceFiles`, `WebPages`, `Paperless`."""

    read: dict[str, FileRead]  # by origin
    passed_over: int  # documents of what has not changed

    def has_gone(self, id_: str, origin: str, /) -> bool: ...


async def sync(
    engine: Engine, reading: Reading, options: SyncOptions, memory: KnownFiles, progress: Progress
) -> Summary:
    """Makes one pass over files or pages. Raises what `ingest` does; BadDocument for an empty folder to prune."""
    if options.prune and isinstance(reading, SourceFiles):
        _check_roots(options, reading)
    known = await _listed(engine, options.corpus) if len(memory) and not options.again else {}
    memory.trust(known)
    files = KeptFiles(engine, options.corpus, reading.read if isinstance(reading, SourceFiles) else {})
    summary = await ingest(engine, reading, options.corpus, progress, options.replace, files.note)
    summary.unchanged += reading.passed_over
    memory.learn(reading.read, files.refusals)
    summary.warnings += filter(None, [memory.save()])
    for id_, origin in (await _listed(engine, options.corpus)).items() if options.prune else ():
        if id_.startswith(options.prefix) and reading.has_gone(id_, origin):
            await engine.documents.delete(options.corpus, id_)
            summary.removed += 1
    if not options.no_keep:  # behind what is removed, whose file would go with it
        summary.warnings += filter(None, [await files.keep()])
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
