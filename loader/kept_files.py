"""Files on disk, kept beside the texts that they became, as uploads are. One event loop."""

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from shardqa.engine import Engine
from shardqa.engine.files import name_of, text_mark
from shardqa.errors import ShardqaError
from shardqa.files.known import FileRead
from shardqa.schema import Document

LARGEST_TOGETHER = 32  # times the largest file that is kept: what one run keeps


class KeptFiles:
    def __init__(self, engine: Engine, corpus: str, read: Mapping[str, FileRead]) -> None:
        """`read`: what is read of files on disk, by their paths; it grows meanwhile."""
        self._engine, self._corpus, self._read = engine, corpus, read
        self.refusals = set[str]()  # ids of documents that are not in
        self._texts: dict[str, dict[str, str]] = {}  # by path, of files that are not too large: id -> `text_mark`

    def note(self, document: Document, is_in: bool) -> None:
        read = self._read.get(document.origin)
        if not is_in:
            self.refusals.add(document.id)
        elif read is not None and int(read.stamp[1]) <= self._engine.files.most:
            self._texts.setdefault(document.origin, {})[document.id] = text_mark(document)

    async def keep(self) -> str:
        """Stores the files of what is in, but those that changed since; returns a warning, or an empty text."""
        most = self._engine.files.most
        bound = left = LARGEST_TOGETHER * most
        try:
            words = await self._engine.words.stored(self._corpus) if most and self._read else None
        except ShardqaError as fault:  # a user without the right
            return f"files are not kept beside their texts: {fault}"
        if not most or (words is not None and not words.keep_files):
            return ""
        large = [path for path, read in self._read.items() if read.ids and int(read.stamp[1]) > most]
        for path, texts in self._texts.items():
            content = await asyncio.to_thread(_content, path, self._read[path].stamp)
            if len(content) > left:
                large.append(path)
            elif content:
                left -= len(content)
                await self._engine.files.keep(self._corpus, name_of(next(iter(texts)), path), texts, content)
        told = f"{most:,} bytes a file by SHARDQA_KEEP_MEGABYTES, {bound:,} a run: {', '.join(large[:3])}"
        return f"{len(large):,} files are not kept beside their texts, since they pass {told}" if large else ""


def _content(path: str, stamp: tuple[int | str, ...]) -> bytes:
    with suppress(OSError):  # gone since it was read
        about = Path(path).stat()
        return Path(path).read_bytes() if (about.st_mtime_ns, about.st_size) == stamp else b""
    return b""
