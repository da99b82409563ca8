"""Reads what people upload in processes of its own, few at once, each with a deadline and a bound on memory.

A file is hostile until it is read: a PDF may want minutes, or gigabytes, and must not hold up questions. One process
reads one file and ends; it is forked from a server that has the readers loaded, in some 30 ms. What comes back is JSON,
since a process that a file took over must not reach this one by a pickle. One event loop.
"""

import asyncio
import base64
import multiprocessing
import os
import resource
import threading
from itertools import islice
from multiprocessing.connection import Connection
from typing import Any

import orjson

from shardqa.errors import BadDocument, FileTooSlow, ShardqaError
from shardqa.loader import formats
from shardqa.loader.source_file import Item, Lost, Skipped, SourceFile, Textless
from shardqa.schema import Document

PROCESSES = 2  # at once, of one API process; more files wait
SECONDS = 60.0  # for one file; a PDF of 300 pages takes one or two
MEMORY = 2 * 1024**3  # bytes of addresses: 64 MiB of file, and what it unpacks to within the readers' own bounds
NICENESS = 10  # questions go first


class FileReaders:
    def __init__(self, processes: int = PROCESSES, seconds: float = SECONDS, memory: int = MEMORY) -> None:
        self._places = asyncio.Semaphore(processes)
        self._seconds = seconds
        self._memory = memory
        self._context = multiprocessing.get_context("forkserver")
        self._context.set_forkserver_preload([__name__])

    async def read(self, content: bytes, name: str, limit: int) -> list[Item]:
        """Returns the items of a file, `limit` at most. Raises BadDocument, FileTooSlow and what its reader raises."""
        return _items(await self._run(content, {"name": name, "limit": limit}))

    async def page(self, content: bytes, name: str, number: int, before: str, words: str) -> bytes:
        """Returns a page of a PDF as PNG, with `words` marked where they follow `before`. Raises what `read` raises."""
        reply = await self._run(content, {"name": name, "page": [number, before, words]})
        return base64.b64decode(reply["png"])

    async def _run(self, content: bytes, job: dict[str, Any]) -> dict[str, Any]:
        async with self._places:
            reading = _Reading(self._context, self._seconds, self._memory)
            try:
                return await asyncio.to_thread(reading.run, content, job)
            except asyncio.CancelledError:
                reading.stop()
                raise


class _Reading:
    """The reading of one file by a process of its own. A thread calls `run`; any thread may call `stop`."""

    def __init__(self, context: Any, seconds: float, memory: int) -> None:
        self._context = context
        self._seconds = seconds
        self._memory = memory
        self._lock = threading.Lock()
        self._process: Any = None
        self._is_stopped = False

    def run(self, content: bytes, job: dict[str, Any]) -> dict[str, Any]:
        name = job["name"]
        ours, theirs = self._context.Pipe()
        with ours:
            self._begin(theirs)
            try:
                ours.send_bytes(orjson.dumps([job, self._seconds, self._memory]))
                ours.send_bytes(content)
                if not ours.poll(self._seconds):
                    raise FileTooSlow(
                        f"{name} took more than {self._seconds:g} s to read; split it, or ingest its text"
                    )
                reply: dict[str, Any] = orjson.loads(ours.recv_bytes())
            except (EOFError, OSError):
                raise BadDocument(f"{name} can't be read: its reader ended, out of memory or broken by it") from None
            finally:
                self.stop()
        if "fault" in reply:
            raise BadDocument(reply["fault"])
        return reply

    def _begin(self, theirs: Connection) -> None:
        with self._lock, theirs:
            self._process = self._context.Process(target=_serve, args=(theirs,), daemon=True)
            if not self._is_stopped:
                self._process.start()

    def stop(self) -> None:
        with self._lock:
            self._is_stopped = True
            if self._process is not None and self._process.pid is not None:
                self._process.kill()
                self._process.join()


def _items(reply: dict[str, Any]) -> list[Item]:
    kinds = {"document": Document, "skipped": Skipped, "lost": Lost, "textless": Textless}
    return [kinds[kind](**fields) for kind, fields in reply["items"]]


# ---- in the process


def _serve(pipe: Connection) -> None:
    job, seconds, memory = orjson.loads(pipe.recv_bytes())
    content = pipe.recv_bytes()
    _confine(seconds, memory)
    try:
        reply = _done(content, job)
    except ShardqaError as fault:
        reply = {"fault": str(fault)}
    except MemoryError:
        reply = {
            "fault": f"{job['name']} takes more memory to read than the {memory // 1024**2:,} MiB that one file gets"
        }
    pipe.send_bytes(orjson.dumps(reply))


def _done(content: bytes, job: dict[str, Any]) -> dict[str, Any]:
    if "page" in job:
        from shardqa.loader.formats.pdf import marked  # in this process alone, as all that reads files

        return {"png": base64.b64encode(marked.png(content, *job["page"])).decode()}
    return {"items": [_record(item) for item in _read(content, job["name"], job["limit"])]}


def _confine(seconds: float, memory: int) -> None:
    os.nice(NICENESS)
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    resource.setrlimit(resource.RLIMIT_CPU, (int(seconds) + 1, int(seconds) + 1))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _read(content: bytes, name: str, limit: int) -> list[Item]:
    source = SourceFile.of_bytes(content, name, name, f"upload:{name}", formats.read)
    try:
        return list(islice(formats.read(source), limit))
    finally:
        source.close()


def _record(item: Item) -> tuple[str, dict[str, Any]]:
    if isinstance(item, Document):
        return "document", item.model_dump()
    if isinstance(item, Textless):
        return "textless", {"place": item.place, "kind": item.kind}
    return ("skipped" if isinstance(item, Skipped) else "lost"), {"place": item.place, "reason": item.reason}
