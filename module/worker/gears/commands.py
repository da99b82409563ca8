"""The RG.* commands: a client's words in, one RESP reply out. All run as coroutines in the loop."""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter
from typing import Any

from shardqa.module.worker import resp
from shardqa.module.worker.gears.execution import Execution, Unset, run_steps
from shardqa.module.worker.gears.readers import text
from shardqa.module.worker.gears.registrations import Registration
from shardqa.module.worker.gears.runs import PARTIAL, convert, run_part, run_script
from shardqa.module.worker.gears.sessions import SessionExists, Sessions
from shardqa.module.worker.shard import Shard


class BadArguments(Exception):
    """A command's arguments can't be understood."""


@dataclass(slots=True)
class Script:
    """RG.PYEXECUTE code [UNBLOCKING] [ID id] [DESCRIPTION text] [UPGRADE] [REPLACE_WITH id] [REQUIREMENTS …]"""

    code: str
    id: str | None = None
    description: str | None = None
    upgrade: bool = False
    replace: str | None = None
    partial: bool = False  # this shard's part of a run that another shard leads


def parse_script(arguments: list[bytes]) -> Script:
    """Raises BadArguments."""
    if not arguments:
        raise BadArguments("wrong number of arguments for 'RG.PYEXECUTE' command")
    try:
        words = [argument.decode() for argument in arguments]
    except UnicodeDecodeError as error:
        raise BadArguments(f"the script is not UTF-8 text: {error}") from None
    script = Script(words[0])
    rest = iter(words[1:])
    for word in rest:
        match word.upper():
            case "ID":
                script.id = _value(word, rest)
            case "DESCRIPTION":
                script.description = _value(word, rest)
            case "REPLACE_WITH":
                script.replace = _value(word, rest)
            case "UPGRADE":
                script.upgrade = True
            case "UNBLOCKING":
                raise BadArguments("UNBLOCKING is not supported; leave it out and wait for the reply")
            case "REQUIREMENTS" | "FORCE_REINSTALL_REQUIREMENTS":
                raise BadArguments(
                    f"{word} is not supported: nothing is installed at run time; "
                    "install the packages into the worker's Python (module argument PYTHON) and leave it out"
                )
            case other if other == PARTIAL:
                script.partial = True
            case _:
                raise BadArguments(f"argument {word[:80]!r} is unknown to RG.PYEXECUTE")
    return script


def _value(word: str, rest: Any) -> str:
    value = next(rest, None)
    if not value:
        raise BadArguments(f"{word} needs a value")
    return str(value)


class Commands:
    """Loop's thread only."""

    def __init__(self, shard: Shard, sessions: Sessions) -> None:
        self._shard = shard
        self._sessions = sessions

    async def run(self, execution: Execution, name: str, arguments: list[bytes]) -> bytes:
        """The reply of one command. Raises what a function raised."""
        match name:
            case "RG.PYEXECUTE":
                return await self._pyexecute(execution, arguments)
            case "RG.TRIGGER" | "RG.TRIGGERONKEY":
                return await self._trigger(execution, name, arguments)
            case "RG.DUMPREGISTRATIONS":
                return resp.encode([registration.dump() for registration in self._shard.registrations])
            case "RG.UNREGISTER":
                return self._unregister(arguments)
            case _:
                return resp.error(f"ERR the worker does not know {name[:80]!r}; module and worker differ in version")

    async def _pyexecute(self, execution: Execution, arguments: list[bytes]) -> bytes:
        try:
            script = parse_script(arguments)
            session = await self._sessions.execute(
                execution, script.id, script.code, script.description, script.upgrade, script.replace, script.partial
            )
        except (BadArguments, SessionExists) as error:
            return resp.error(f"ERR {error}")
        if session.plan is None:
            return resp.OK
        if script.partial:
            return resp.bulk(await run_part(session, execution, session.plan))
        results, errors = await run_script(session, execution, session.plan)
        return resp.encode([results, errors])

    async def _trigger(self, execution: Execution, name: str, arguments: list[bytes]) -> bytes:
        if len(arguments) < (1 if name == "RG.TRIGGER" else 2):
            return resp.error(f"ERR wrong number of arguments for '{name}' command")
        record = text(arguments)
        registration = self._shard.registrations.triggered_by(str(record[0]))
        if registration is None:
            return resp.error("ERR subcommand not found")
        results = await self.run_registration(execution, registration, record)
        if results is None:
            return resp.error(execution.errors[0])
        if execution.reply is not Unset.UNSET:
            return resp.encode(execution.reply)
        return resp.encode(results)

    async def run_registration(self, execution: Execution, registration: Registration, record: Any) -> list[Any] | None:
        """The records one record became, or None when a step failed (the execution has the error)."""
        started = perf_counter()
        statistics = registration.statistics
        statistics.triggered += 1
        try:
            results = await run_steps(execution, registration.steps, [record])
        except BaseException:
            statistics.aborted += 1
            raise
        statistics.finished(started, execution.errors[0] if execution.errors else None)
        if execution.errors:
            return None
        return [convert(r) for r in results] if registration.convert else results

    def _unregister(self, arguments: list[bytes]) -> bytes:
        if len(arguments) != 1:
            return resp.error("ERR wrong number of arguments for 'RG.UNREGISTER' command")
        id = text(arguments[0])
        if not self._sessions.unregister(str(id)):
            return resp.error(f"ERR execution {str(id)[:80]} does not exist; RG.DUMPREGISTRATIONS lists what does")
        return resp.OK
