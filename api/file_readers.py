"""Reads what people upload in processes of its own, few at once, each with a deadline and a bound on memory.

A process reads one file and ends, so that none meets another's; it is forked from a server that has the readers' names
loaded, in some 30 ms. One event loop.
"""

import asyncio
import base64
import multiprocessing
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from typing import TypeVar

from shardqa.files import formats, reader_process
from shardqa.files.reader_process import MEMORY, SECONDS, ReaderProcess
from shardqa.files.source_file import Item, SourceFile

PROCESSES = 2  # at once, of one API process; more files wait
NICENESS = 10  # questions go first
T = TypeVar("T")


class FileReaders:
    def __init__(self, processes: int = PROCESSES, seconds: float = SECONDS, memory: int = MEMORY) -> None:
        multiprocessing.get_context("forkserver").set_forkserver_preload([reader_process.__name__])
        self._places = asyncio.Semaphore(processes)
        self._seconds = seconds
        self._memory = memory

    async def read(self, content: bytes, name: str, limit: int) -> list[Item]:
        """Returns the items of a file, `limit` at most. Raises BadDocument, FileTooSlow."""
        opens = partial(SourceFile.of_bytes, content, name, name, f"upload:{name}", formats.read)
        return await self._run(
            lambda process: [item for item, _ in islice(process.items(name, self._seconds, opens), limit)]
        )

    async def page(self, content: bytes, name: str, number: int, before: str, words: str) -> bytes:
        """Returns a page of a PDF as PNG, with `words` marked where they follow `before`. Raises what `read` raises."""
        png = await self._run(
            lambda process: next(process.run(name, self._seconds, _png, content, number, before, words))
        )
        return base64.b64decode(png)

    async def _run(self, read: Callable[[ReaderProcess], T]) -> T:
        async with self._places:
            process = ReaderProcess(self._memory, "forkserver", NICENESS)
            try:
                return await asyncio.to_thread(_whole, read, process)
            except asyncio.CancelledError:
                process.stop()
                raise


def _whole(read: Callable[[ReaderProcess], T], process: ReaderProcess) -> T:
    try:
        return read(process)
    finally:
        process.stop()


def _png(content: bytes, number: int, before: str, words: str) -> Iterator[str]:
    from shardqa.files.formats.pdf import marked  # in the reader's process alone, as all that reads files

    yield base64.b64encode(marked.png(content, number, before, words)).decode()
