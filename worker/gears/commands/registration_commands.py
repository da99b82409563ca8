"""The commands about registrations."""

from functools import partial

from shardqa.worker import resp
from shardqa.worker.gears.cluster.distribution import Distribution
from shardqa.worker.gears.commands.rg_commands import RgCommand
from shardqa.worker.gears.pipeline.run import Run
from shardqa.worker.gears.registrations.registrations import Registrations


class RegistrationCommands:
    def __init__(self, registrations: Registrations, distribution: Distribution) -> None:
        self._registrations = registrations
        self._distribution = distribution

    def table(self) -> dict[str, RgCommand]:
        return {
            "RG.DUMPREGISTRATIONS": RgCommand(partial(self._dump, False)),
            "RG.DUMPREGISTRATIONS WITH STATISTICS": RgCommand(partial(self._dump, True)),
            "RG.CLEARREGISTRATIONSSTATS": RgCommand(self._clear_statistics),
            "RG.UNREGISTER": RgCommand(self._unregister, 1, 2),
            "RG.PAUSEREGISTRATIONS": RgCommand(partial(self._pause, True), 1, None),
            "RG.UNPAUSEREGISTRATIONS": RgCommand(partial(self._pause, False), 1, None),
        }

    async def _dump(self, statistics: bool, _run: Run, _words: list[str]) -> bytes:
        registrations = self._registrations
        return resp.encode([r.dump(registrations.queue_of(r) if statistics else None) for r in registrations])

    async def _clear_statistics(self, _run: Run, _words: list[str]) -> bytes:
        self._registrations.clear_statistics()
        return resp.OK

    async def _unregister(self, _run: Run, words: list[str]) -> bytes:
        """Answers RG.UNREGISTER id [ABORTPENDING]: that word drops what waits for the registration, too."""
        if words[1:] and words[1].upper() != "ABORTPENDING":
            return resp.error(f"ERR argument {words[1][:40]!r} is unknown; RG.UNREGISTER id [ABORTPENDING]")
        if not await self._distribution.unregister(*words):
            return resp.error(f"ERR execution {words[0][:80]} does not exist; RG.DUMPREGISTRATIONS lists what does")
        return resp.OK

    async def _pause(self, is_paused: bool, _run: Run, ids: list[str]) -> bytes:
        """Pauses all ids, or replies with an error and pauses none."""
        for id in ids:
            registration = self._registrations.get(id)
            if registration is None:
                return resp.error(
                    f"ERR Execution {id[:80]} does not exists on this shard; RG.DUMPREGISTRATIONS lists what does"
                )
            if registration.reader != "StreamReader":
                what = f"{registration.reader} does not support {'pause' if is_paused else 'unpause'}"
                return resp.error(f"ERR Reader {what}: registration {id[:80]} follows no stream")
        await self._distribution.pause(ids, is_paused)
        return resp.OK
