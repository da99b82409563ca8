"""`gearsFuture`: a record that somebody else finishes later; and the plain futures of `createFuture`."""

import asyncio
from collections.abc import Generator
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from typing import Any

from shardqa.worker.gears.pipeline.run import FlatError


class PlainFuture:
    """A future of `createFuture`: the loop awaits it, any thread sets it, once."""

    def __init__(self) -> None:
        self._future: Future[Any] = Future()

    def __await__(self) -> Generator[Any, None, Any]:
        return asyncio.wrap_future(self._future).__await__()

    def set(self, result: Any) -> None:
        with suppress(InvalidStateError):
            self._future.set_result(result)

    def fail(self, error: Any) -> None:
        """Ends the future with an error: an exception, or its text."""
        with suppress(InvalidStateError):
            self._future.set_exception(error if isinstance(error, BaseException) else FlatError(str(error)))


class GearsFuture(PlainFuture):
    """Suspends the record of the step that returns it. Any thread may continue it, once; more often has no effect.

    One that nobody can continue any more fails its record.
    """

    def __del__(self) -> None:
        self.continueFailed("Async record did not called continue: nothing holds its gearsFuture any more")

    def continueRun(self, record: Any) -> None:
        """Continues with `record` as the step's result for the record that waits."""
        self.set(record)

    def continueFailed(self, message: Any) -> None:
        self.fail(str(message))


def record_of(future: GearsFuture) -> Future[Any]:
    """Returns the plain future that the record waits for; it does not hold the gearsFuture."""
    return future._future
