"""The requests, misses and hooked commands under way: each has a run, until its reply has gone out."""

import asyncio
import threading
from collections.abc import Coroutine

from shardqa.worker import resp
from shardqa.worker.calls import Rights
from shardqa.worker.frames import PayloadTooLarge, Type
from shardqa.worker.gears.pipeline.readers import text
from shardqa.worker.gears.pipeline.run import Run, describe, enter
from shardqa.worker.link import Link
from shardqa.worker.threads import Cancelled, Threads


class Requests:
    """The requests under way. For any thread, but `cancel`, which is for the loop's."""

    def __init__(self, link: Link, threads: Threads, computing: threading.Lock) -> None:
        self.running: dict[int, Run] = {}  # by frame id; changed by the loop's thread, and by one that computes a miss
        self.computing = computing  # held by the reading thread that computes
        self._link = link
        self._threads = threads

    def run_of(self, id: int, user: bytes, words: list[bytes]) -> Run:
        rights = Rights.of_request(id, user.decode("utf-8", "surrogateescape"))
        run = Run(self._threads, rights)
        run.request = id
        run.name = f"{text(words[0])} of {rights.user}".encode("utf-8", "replace")
        run.on_progress = lambda: self._link.send_list(Type.PROGRESS, id, ())
        return run

    def spawn(self, run: Run, reply: Coroutine[None, None, bytes]) -> None:
        """Goes on in the loop, to the reply."""
        self._threads.spawn(self._answer(run, reply))

    async def _answer(self, run: Run, coroutine: Coroutine[None, None, bytes]) -> None:
        id, run.task = run.request, asyncio.current_task()
        self.running[id] = run
        enter(run)
        try:
            reply = await coroutine
        except asyncio.CancelledError:
            reply = resp.error(describe(Cancelled()))
        except BaseException as error:  # noqa: BLE001 - sys.exit of a function must not end the worker
            reply = resp.error(describe(error))
        finally:
            del self.running[id]
        self.send(id, reply)
        run.release()

    def send(self, id: int, reply: bytes) -> None:
        try:
            self._link.send(Type.REPLY, id, reply)
        except PayloadTooLarge as error:
            self._link.send(Type.REPLY, id, resp.error(f"ERR {error}"))

    def cancel(self, id: int) -> None:
        run = self.running.get(id)
        if run is not None:
            run.cancel()
