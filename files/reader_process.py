"""A process that reads files, one after another, within bounds of memory and time.

A file is hostile until it is read: a PDF may want minutes, or gigabytes, or end the library that reads it. What comes
back is JSON, since a process that a file took over must not reach this one by a pickle.
"""

import multiprocessing
import os
import resource
import signal
import threading
import traceback
from collections.abc import Callable, Iterator
from dataclasses import asdict
from multiprocessing.connection import Connection
from time import monotonic, process_time
from typing import Any, TypeAlias

import orjson

from shardqa.errors import BadDocument, FileTooSlow, ShardqaError
from shardqa.files import formats
from shardqa.files.source_file import Item, Lost, Recognized, Skipped, SourceFile, Textless
from shardqa.schema import Document

MOMENT = 0.05  # seconds after which what is read goes on
MEMORY = 2 * 1024**3  # bytes that a file may take: 64 MiB of it, and what it unpacks to within the readers' own bounds
SECONDS = 60.0  # for one file; a PDF of 300 pages takes one or two
OCR_TIMES = 50  # as long as to read a page takes it to recognize its text
SECONDS_PER_MEGABYTE = 20.0  # more of it for files of one's own, which may be large
KINDS = {kind.__name__: kind for kind in (Document, Skipped, Lost, Textless, Recognized)}
Job: TypeAlias = Callable[..., Iterator[Any]]
"""A function of a module, whose replies JSON takes."""


class ReaderProcess:
    """Is started for the first file, and again after one that ended it. One thread reads; any may call `stop`."""

    def __init__(self, memory: int = 4 * MEMORY, start: str = "fork", niceness: int = 0) -> None:
        self._memory, self._niceness = memory, niceness
        self._context: Any = multiprocessing.get_context(start)
        self._lock = threading.Lock()
        self._process: Any = None
        self._pipe: Connection | None = None
        self._is_stopped = False

    def items(
        self, name: str, seconds: float, opens: Callable[[], SourceFile], format: formats.Format | None = None
    ) -> Iterator[tuple[Item, int]]:
        """Yields the items of a file that is opened there, each with the bytes read so far. Raises as `run`."""
        for kind, fields, position in self.run(name, seconds, _items, opens, format):
            yield KINDS[kind](**fields), position

    def items_and_fault(
        self, label: str, size: int, opens: Callable[[], SourceFile], format: formats.Format | None = None
    ) -> Iterator[tuple[Item, int]]:
        """Yields the same of a file of so many bytes, and what ends its reading as a Skipped."""
        seconds = SECONDS + size / 1e6 * SECONDS_PER_MEGABYTE
        try:
            yield from self.items(label.rpartition("/")[2], seconds, opens, format)
        except (BadDocument, FileTooSlow) as fault:
            yield Skipped(label, str(fault)), 0

    def run(self, name: str, seconds: float, job: Job, *arguments: Any) -> Iterator[Any]:
        """Yields the replies of `job` there, which are awaited for so many seconds in all.

        Raises BadDocument and FileTooSlow; then, and where not all replies are taken, the process ends.
        """
        left, is_whole = seconds, False
        try:
            pipe = self._connection()
            pipe.send((name, seconds, job, arguments))
            while not is_whole:
                start = monotonic()
                if not pipe.poll(left):
                    raise FileTooSlow(f"{name} took more than {seconds:g} s to read; split it, or ingest its text")
                replies, is_whole, fault = orjson.loads(pipe.recv_bytes())
                left = max(left - (monotonic() - start), 0)
                yield from replies
                if fault:
                    raise BadDocument(fault)
        except (EOFError, OSError):
            raise BadDocument(f"{name} can't be read: its reader ended, out of memory or broken by it") from None
        finally:
            if not is_whole:
                self.end()

    def stop(self) -> None:
        """Ends the process for good."""
        self._is_stopped = True
        self.end()

    def _connection(self) -> Connection:
        with self._lock:
            if self._is_stopped:
                raise EOFError
            if self._pipe is None:
                ours, theirs = self._context.Pipe()
                with theirs:
                    arguments = (theirs, ours, self._memory, self._niceness)
                    self._process = self._context.Process(target=_serve, args=arguments, daemon=True)
                    self._process.start()
                self._pipe = ours
            return self._pipe

    def end(self) -> None:
        """Ends the process; the next file has another."""
        with self._lock:
            if self._pipe is not None:
                self._process.kill()
                self._process.join()
                self._pipe = None


# ---- in the process


def _serve(pipe: Connection, other: Connection, memory: int, niceness: int) -> None:
    other.close()  # so that this one ends with the process that holds it
    os.nice(niceness)
    _confine(memory)
    while True:
        try:
            name, seconds, job, arguments = pipe.recv()
        except EOFError:
            return
        _bound(resource.RLIMIT_CPU, int(process_time() + seconds) + 1)  # also where nobody waits any more
        replies, start, fault = list[Any](), monotonic(), ""
        try:
            for reply in job(*arguments):
                replies.append(reply)
                if monotonic() - start > MOMENT:
                    pipe.send_bytes(orjson.dumps([replies, False, ""]))
                    replies, start = [], monotonic()
        except MemoryError:
            mib = memory // 1024**2
            fault = f"{name} takes more memory to read than the {mib:,} MiB that one file gets"
        except ShardqaError as error:
            fault = str(error)
        except Exception as error:  # noqa: BLE001 - whatever a reader raises is a fault of this file alone
            traceback.print_exc()
            fault = f"{name} can't be read: {type(error).__name__} {error}"
        pipe.send_bytes(orjson.dumps([replies, not fault, fault]))


def _confine(memory: int) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C ends who asked for the files, and by that this process
    with open("/proc/self/statm") as pages:  # a fork has the addresses of the process that it comes from
        own = int(pages.read().split()[0]) * resource.getpagesize()
    _bound(resource.RLIMIT_AS, own + memory)
    _bound(resource.RLIMIT_CORE, 0)


def _bound(kind: int, most: int) -> None:
    hard = resource.getrlimit(kind)[1]
    resource.setrlimit(kind, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))


def _items(opens: Callable[[], SourceFile], format: formats.Format | None) -> Iterator[Any]:
    source = opens()
    try:
        for item in formats.read(source, format):
            fields = item.model_dump() if isinstance(item, Document) else asdict(item)
            yield type(item).__name__, fields, source.position
    finally:
        source.close()
