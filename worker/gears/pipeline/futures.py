"""`gearsFuture`: a record that somebody else finishes later; and the plain futures of `createFuture`."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from concurrent.futures import Future
from typing import Any

from shardqa.worker.gears.pipeline.run import FlatError


class PlainFuture:
    """A future of `createFuture`: awaited in the loop, set from any thread, once."""

    def __init__(self) -> None:
        self._future: Future[Any] = Future()

    def __await__(self) -> Generator[Any, None, Any]:
        return asyncio.wrap_future(self._future).__await__()

    def set(self, result: Any) -> None:
        if not self._future.done():
            self._future.set_result(result)

    def fail(self, error: Any) -> None:
        """`error`: an exception, or its text."""
        if not self._future.done():
            self._future.set_exception(error if isinstance(error, BaseException) else FlatError(str(error)))


class GearsFuture(PlainFuture):
    """Returned by a step, it suspends its record. Any thread may continue it, once; a second time changes nothing.

    One that nobody can continue any more fails its record.
    """

    def __del__(self) -> None:
        self.continueFailed("Async record did not called continue: nothing holds its gearsFuture any more")

    def continueRun(self, record: Any) -> None:
        """`record` is what the step gives for the record that waits."""
        self.set(record)

    def continueFailed(self, message: Any) -> None:
        self.fail(str(message))


def record_of(future: GearsFuture) -> Future[Any]:
    """Returns what the record waits for, which does not hold the gearsFuture."""
    return future._future
