"""RG.PYEXECUTE: runs a script."""

import asyncio
import hashlib
from dataclasses import dataclass

from shardqa.worker import resp
from shardqa.worker.gears.cluster.distribution import Distribution
from shardqa.worker.gears.cluster.executor import Executor
from shardqa.worker.gears.commands.rg_commands import RgCommand
from shardqa.worker.gears.pipeline.run import Run
from shardqa.worker.gears.pipeline.worker_log import WorkerLog
from shardqa.worker.gears.sessions.requirements import Requirements
from shardqa.worker.gears.sessions.script import Script, parse_script
from shardqa.worker.gears.sessions.sessions import Sessions


@dataclass(eq=False)
class PyExecute:
    """The command RG.PYEXECUTE. Loop's thread only."""

    _sessions: Sessions
    _distribution: Distribution
    _executor: Executor
    _requirements: Requirements
    _log: WorkerLog

    def table(self) -> dict[str, RgCommand]:
        return {"RG.PYEXECUTE": RgCommand(self._execute, 0, None, binary=True)}

    async def _execute(self, run: Run, arguments: list[bytes]) -> bytes:
        """Runs a script. Raises BadArguments, SessionExists, CannotTravel, and what the script raises."""
        script = parse_script(arguments)
        self._log(audit_line(run.caller.user, script))
        if script.requirements:
            wish = (script.requirements, script.reinstall)
            await asyncio.gather(self._requirements.ensure(*wish), self._distribution.require(*wish))
        session = await self._sessions.execute(run, script)
        await self._distribution.register(session, script.replace, run)
        if session.plan is None:
            return resp.OK
        if script.unblocking:
            execution = self._executor.start(session, run, Run(run.threads, run.rights), session.plan)
            return resp.encode(execution.id)
        return resp.encode(list(await self._executor.run(session, run, session.plan)))


def audit_line(user: str, script: Script) -> str:
    """Returns the log line that says who brought which code."""
    digest = hashlib.sha256(script.code.encode()).hexdigest()[:16]
    name = "" if script.id is None else f" as session {script.id[:80]!r}"
    needs = f", requires {' '.join(script.requirements)[:200]!r}" if script.requirements else ""
    return f"RG.PYEXECUTE by user {user!r}{name}: {len(script.code)} characters, sha256 {digest}{needs}"
