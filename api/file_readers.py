"""Reads what people upload in processes of its own, few at once, each with a deadline and a bound on memory.

A client has half of the places at most, so that files of one that take long leave room for the others'.

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
from weakref import WeakValueDictionary

from shardqa.api import bearer
from shardqa.files import formats, reader_process
from shardqa.files.reader_process import MEMORY, OCR_TIMES, SECONDS, ReaderProcess
from shardqa.files.source_file import Item, Recognized, SourceFile

PROCESSES = 2  # at once, of one client; all clients of an API process have twice as many, and more files wait
NICENESS = 10  # questions go first
T = TypeVar("T")


class FileReaders:
    def __init__(self, processes: int = PROCESSES, seconds: float = SECONDS, memory: int = MEMORY) -> None:
        multiprocessing.get_context("forkserver").set_forkserver_preload([reader_process.__name__])
        self._places, self._processes = asyncio.Semaphore(2 * processes), processes
        self._of_client: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()
        self._seconds = seconds
        self._memory = memory

    async def read(
        self,
        content: bytes,
        name: str,
        limit: int,
        ocr: bool = False,
        tell: Callable[[Recognized], None] = lambda page: None,
    ) -> list[Item]:
        """Returns the items of a file, `limit` at most; `tell` hears of pages. Raises BadDocument, FileTooSlow."""
        opens = partial(SourceFile.of_bytes, content, name, name, f"upload:{name}", formats.read, ocr)
        seconds = self._seconds * (OCR_TIMES if ocr else 1)

        def items(process: ReaderProcess) -> Iterator[Item]:
            for item, _ in process.items(name, seconds, opens):
                if isinstance(item, Recognized):
                    tell(item)
                else:
                    yield item

        return await self._run(lambda process: list(islice(items(process), limit)))

    async def page(self, content: bytes, name: str, number: int, before: str, words: str) -> bytes:
        """Returns a page of a PDF as PNG, with `words` marked where they follow `before`. Raises what `read` raises."""
        png = await self._run(lambda one: next(one.run(name, self._seconds, _png, content, number, before, words)))
        return base64.b64decode(png)

    async def _run(self, read: Callable[[ReaderProcess], T]) -> T:
        client = bearer.client.get()
        own = self._of_client[client] = self._of_client.get(client) or asyncio.Semaphore(self._processes)
        async with own, self._places:
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
