"""RG.PYEXECUTE: its arguments, and what becomes of a script."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from shardqa.module.worker import resp
from shardqa.module.worker.gears.cluster.pickling import CannotTravel
from shardqa.module.worker.gears.pipeline.run import Run

if TYPE_CHECKING:
    from shardqa.module.worker.gears.registry.sessions import Sessions
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
    unblocking: bool = False
    requirements: list[str] = field(default_factory=list)
    reinstall: bool = False


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
                script.unblocking = True
            case "FORCE_REINSTALL_REQUIREMENTS":
                script.reinstall = True
            case "REQUIREMENTS":
                script.requirements = list(rest)  # all that follow
                if not script.requirements:
                    raise BadArguments(f"{word} needs a value")
            case _:
                raise BadArguments(f"argument {word[:80]!r} is unknown to RG.PYEXECUTE")
    return script


def audit_line(user: str, script: Script) -> str:
    """Who brought which code."""
    digest = hashlib.sha256(script.code.encode()).hexdigest()[:16]
    named = "" if script.id is None else f" as session {script.id[:80]!r}"
    required = f", requires {' '.join(script.requirements)[:200]!r}" if script.requirements else ""
    return f"RG.PYEXECUTE by user {user!r}{named}: {len(script.code)} characters, sha256 {digest}{required}"


def _value(word: str, rest: Iterator[str]) -> str:
    value = next(rest, None)
    if not value:
        raise BadArguments(f"{word} needs a value")
    return value


async def pyexecute(shard: Shard, sessions: Sessions, run: Run, arguments: list[bytes]) -> bytes:
    """Raises BadArguments, SessionExists, and what the script raised."""
    script = parse_script(arguments)
    shard.log(audit_line(run.caller.user, script))
    if script.requirements:
        await shard.requirements.ensure(script.requirements, script.reinstall)
        await sessions.distribution.require(script.requirements, script.reinstall)
    session = await sessions.execute(run, script)
    if session.plan is None:
        return resp.OK
    if script.unblocking:
        execution = sessions.runs.start(session, run, Run(shard.threads, run.rights), session.plan)
        return resp.encode(execution.id)
    try:
        results, errors = await sessions.runs.run(session, run, session.plan)
    except CannotTravel as error:
        return resp.error(f"ERR {error}")
    return resp.encode([results, errors])
