"""Files on disk, kept beside the texts that they became, as uploads are. One event loop."""

import asyncio
import os
from pathlib import Path

from shardqa.engine import Engine
from shardqa.engine.files import name_of, text_mark
from shardqa.errors import ShardqaError
from shardqa.schema import Document

LARGEST_TOGETHER = 32  # times the largest file that is kept: what one run keeps
TOLD = 3  # files named that are too large


class KeptFiles:
    def __init__(self, engine: Engine, corpus: str) -> None:
        self.refusals = set[str]()  # ids of documents that are not in
        self._engine = engine
        self._corpus = corpus
        self._stamps: dict[str, tuple[int, int]] = {}  # by path: bytes and time of change; none of what is no file
        self._texts: dict[str, dict[str, str]] = {}  # by path, of those that are not too large: id -> `text_mark`

    def note(self, document: Document, is_in: bool) -> None:
        path = document.origin
        if not is_in:
            self.refusals.add(document.id)
            return
        if path not in self._stamps:
            self._stamps[path] = _stamp(path)
        if 0 < self._stamps[path][0] <= self._engine.files.most:
            self._texts.setdefault(path, {})[document.id] = text_mark(document)

    async def keep(self) -> str:
        """Stores the files of what is in, but those that changed since; returns a warning, or an empty text."""
        most = self._engine.files.most
        bound = left = LARGEST_TOGETHER * most
        try:
            if not self._stamps or not most or not await self._engine.words.keep_files(self._corpus):
                return ""
        except ShardqaError as fault:  # a user without the right
            return f"files are not kept beside their texts: {fault}"
        large = [path for path, (size, _) in self._stamps.items() if size > most]
        for path, texts in self._texts.items():
            if self._stamps[path][0] > left:
                large.append(path)
            elif content := await asyncio.to_thread(_content, path, self._stamps[path]):
                left -= len(content)
                await self._engine.files.keep(self._corpus, name_of(next(iter(texts)), path), texts, content)
        named = ", ".join(large[:TOLD]) + ", …" * (len(large) > TOLD)
        told = f"{most:,} bytes a file by SHARDQA_KEEP_MEGABYTES, {bound:,} a run: {named}"
        return f"{len(large):,} files are not kept beside their texts, since they pass {told}" if large else ""


def _stamp(path: str) -> tuple[int, int]:
    try:
        about = os.stat(path) if path.startswith("/") else None
    except OSError:  # gone since it was read
        about = None
    return (about.st_size, about.st_mtime_ns) if about else (0, 0)


def _content(path: str, stamp: tuple[int, int]) -> bytes:
    try:
        return Path(path).read_bytes() if _stamp(path) == stamp else b""
    except OSError:
        return b""
