"""Lines of the Redis log for functions that are slow or fail, with the id of the request that asked.

The id comes with a Rank and is remembered with the ranking; the GET that reads it finds it there. Nothing that people
ask is logged.
"""

from collections.abc import Awaitable, Callable
from time import perf_counter
from typing import Any

from shardqa.errors import ShardqaError
from shardqa.worker.runtime import Runtime

SLOW_SECONDS = 1.0


class Journal:
    """The worker's loop only."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime

    def logged(
        self, name: str, function: Callable[[Any], Awaitable[Any]], describe: Callable[[Any], str]
    ) -> Callable[[Any], Awaitable[Any]]:
        """Returns the function with a log line for each run that is slow or fails; `describe` names the run."""

        async def wrapper(record: Any) -> Any:
            start = perf_counter()
            try:
                result = await function(record)
            except Exception as error:
                if not (isinstance(error, ShardqaError) and error.status < 500):  # else the caller's fault, who is told
                    self._runtime.log(f"{name} failed: {error} ({describe(record)})", "warning")
                raise
            if (seconds := perf_counter() - start) >= SLOW_SECONDS:
                self._runtime.log(f"{name} took {seconds:.1f} s ({describe(record)})", "notice")
            return result

        return wrapper
