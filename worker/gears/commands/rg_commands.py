"""The RG.* commands: a client's words in, one RESP reply out. All run as coroutines in the loop."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from shardqa.worker import resp
from shardqa.worker.gears.cluster.distribution import NotDistributed
from shardqa.worker.gears.pipeline.run import Run
from shardqa.worker.gears.sessions.pickling import CannotTravel
from shardqa.worker.gears.sessions.requirements import RequirementsFailed
from shardqa.worker.gears.sessions.script import BadArguments
from shardqa.worker.gears.sessions.sessions import SessionExists

WITH_STATISTICS = ["WITH", "STATISTICS"]
"""The last words of a command that is in the table with them, too; RedisGears has none."""
REFUSALS = (BadArguments, SessionExists, CannotTravel, NotDistributed, RequirementsFailed)


@dataclass(frozen=True, slots=True)
class RgCommand:
    answer: Callable[[Run, list[Any]], Awaitable[bytes]]
    least: int = 0  # arguments
    most: int | None = 0  # None: any number
    binary: bool = False  # it takes arguments as bytes, not as text


class RgCommands:
    def __init__(self, *tables: Mapping[str, RgCommand]) -> None:
        self._commands = {name: command for table in tables for name, command in table.items()}

    async def run(self, run: Run, name: str, arguments: list[bytes]) -> bytes:
        """Returns the reply of one command. Raises what a function raised."""
        command = self._commands.get(name)
        if command is None:
            return resp.error(f"ERR the worker does not know {name[:80]!r}; module and worker differ in version")
        words: list[Any] = arguments
        if not command.binary:
            words = [argument.decode("utf-8", "surrogateescape") for argument in arguments]
            with_statistics = self._commands.get(f"{name} {' '.join(WITH_STATISTICS)}")
            if with_statistics is not None and [word.upper() for word in words[-2:]] == WITH_STATISTICS:
                command, words = with_statistics, words[:-2]
        if len(words) < command.least or (command.most is not None and len(words) > command.most):
            return resp.error(f"ERR wrong number of arguments for '{name}' command")
        try:
            return await command.answer(run, words)
        except REFUSALS as error:
            return resp.error(f"ERR {error}")
