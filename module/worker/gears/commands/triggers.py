"""RG.TRIGGER and RG.TRIGGERONKEY: a registered function runs for a client."""

from __future__ import annotations

from shardqa.module.worker import resp
from shardqa.module.worker.gears.commands.rg_commands import RgCommand
from shardqa.module.worker.gears.pipeline.readers import text
from shardqa.module.worker.gears.pipeline.run import Run, Unset
from shardqa.module.worker.gears.registry.registration_runs import RegistrationRuns
from shardqa.module.worker.gears.registry.registrations import Registrations
from shardqa.module.worker.gears.registry.sessions import Sessions


class Triggers:
    def __init__(self, registrations: Registrations, sessions: Sessions, runs: RegistrationRuns) -> None:
        self._registrations = registrations
        self._sessions = sessions
        self._runs = runs

    def table(self) -> dict[str, RgCommand]:
        return {
            "RG.TRIGGER": RgCommand(self._trigger, 1, None, binary=True),
            "RG.TRIGGERONKEY": RgCommand(self._trigger, 2, None, binary=True),
        }

    async def _trigger(self, run: Run, arguments: list[bytes]) -> bytes:
        record = text(arguments)
        name = str(record[0])
        registration = self._registrations.triggered_by(name)
        if registration is None:  # a replay may still bring it
            registration = await self._sessions.settled(lambda: self._registrations.triggered_by(name))
        if registration is None:
            return resp.error("ERR subcommand not found")
        registration.enter(run)
        if registration.in_order:
            async with self._runs.turn(registration):
                results = await self._runs.run(run, registration, [record])
        else:
            results = await self._runs.run(run, registration, [record])
        if results is None:
            return resp.error(run.errors[0])
        return resp.encode(results if run.reply is Unset.UNSET else run.reply)
