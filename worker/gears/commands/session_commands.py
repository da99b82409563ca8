"""The commands about sessions, and about the process that runs them: its settings, log, memory and profiles."""

import resource
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shardqa.worker import resp
from shardqa.worker.gears.commands.rg_commands import RgCommand
from shardqa.worker.gears.pipeline.profiles import ORDERS, NotProfiled, Profiles
from shardqa.worker.gears.pipeline.run import Run
from shardqa.worker.gears.pipeline.worker_log import WorkerLog
from shardqa.worker.gears.registrations.registrations import Registrations
from shardqa.worker.gears.sessions.requirements import Requirements
from shardqa.worker.gears.sessions.session import Session
from shardqa.worker.gears.sessions.sessions import Sessions
from shardqa.worker.gears.settings import WorkerSettings

USAGE = "RG.PYDUMPSESSIONS [TS|DEAD] [VERBOSE] [CODE] [SESSIONS id…]"


@dataclass(eq=False)
class SessionCommands:
    _sessions: Sessions
    _registrations: Registrations
    _requirements: Requirements
    _profiles: Profiles
    _at_work: Callable[[], list[Session]]  # whose executions run

    def table(self) -> dict[str, RgCommand]:
        return {
            "RG.PYDUMPSESSIONS": RgCommand(self._dump, 0, None),
            "RG.PYPROFILE": RgCommand(self._profile, 0, None),
            "RG.PYDUMPREQS": RgCommand(self._dump_requirements),
        }

    async def _dump(self, _run: Run, words: list[str]) -> bytes:
        """Lists sessions (see USAGE). TS and DEAD list those that still run and are not kept: replaced ones, say."""
        ids: list[str] | None = None
        options = set[str]()
        for at, word in enumerate(map(str.upper, words)):
            if word == "SESSIONS":
                ids = words[at + 1 :]
                break
            if word not in ("VERBOSE", "CODE", "TS", "DEAD"):
                return resp.error(f"ERR Unknown option {word[:40]!r}; {USAGE}")
            options.add(word)
        if options & {"TS", "DEAD"}:
            own = list(self._sessions)
            return resp.encode([self._session(one, options) for one in self._at_work() if one not in own])
        if ids is None:
            within = self._sessions.beside([session.id for session in self._sessions])
            return resp.encode([self._session(one, options) for one in self._sessions if one not in within])
        sessions = [(id, self._sessions.get(id)) for id in ids]
        missing = "Session {} does not exists"
        return resp.encode([missing.format(id) if s is None else self._session(s, options) for id, s in sessions])

    def _session(self, session: Session, options: set[str]) -> list[Any]:
        queue_of, verbose = self._registrations.queue_of, "VERBOSE" in options
        sessions = [session, *self._sessions.beside([session.id])]
        every = [registration for one in sessions for registration in one.registrations]
        registrations = [r.dump(queue_of(r)) if verbose else r.id for r in every]
        fields = resp.pairs(
            ID=session.id,
            sessionDescription=session.description,
            refCount=len(registrations),
            linked="primary",
            dead="true" if options & {"TS", "DEAD"} else "false",
            requirementInstallationNeeded=len(session.requirements),
            requirements=self._requirements.dump([session.requirements]) if verbose else list(session.requirements),
            registrations=registrations,
        )
        # with CODE also what a backup needs to register it elsewhere
        return fields + (resp.pairs(user=session.user, code=session.code) if "CODE" in options else [])

    async def _dump_requirements(self, _run: Run, _words: list[str]) -> bytes:
        return resp.encode(self._requirements.dump(session.requirements for session in self._sessions))

    async def _profile(self, _run: Run, words: list[str]) -> bytes:
        match words:
            case [verb, id, *order] if verb.upper() == "STATS" and len(order) <= 1:
                if order and order[0] not in ORDERS:
                    return resp.error(f"ERR there is no order {order[0][:40]!r}; choose one of {', '.join(ORDERS)}")
                try:
                    return resp.encode(self._profiles.text(id, order[0] if order else "tottime"))
                except NotProfiled as error:
                    return resp.error(f"ERR {error}")
            case [verb, id] if verb.upper() == "RESET":
                if self._sessions.get(id) is None and not self._profiles.has(id):
                    return resp.error(f"ERR session {id[:80]} does not exist")
                self._profiles.reset(id)
                return resp.OK
        return resp.error("ERR RG.PYPROFILE STATS session [order] or RG.PYPROFILE RESET session")


class ProcessCommands:
    def __init__(self, settings: WorkerSettings, log: WorkerLog) -> None:
        self._settings = settings
        self._log = log

    def table(self) -> dict[str, RgCommand]:
        return {
            "RG.CONFIGGET": RgCommand(self._get, 1, None),
            "RG.CONFIGSET": RgCommand(self._set, 2, None),
            "RG.PYLOGS": RgCommand(self._lines, 0, 1),
            "RG.PYSTATS": RgCommand(self._memory),
        }

    async def _get(self, _run: Run, names: list[str]) -> bytes:
        values = [(name, self._settings.get(name)) for name in names]
        missing = "ERR (error) Unsupported config parameter: "
        return _array([resp.error(missing + name) if value is None else resp.encode(value) for name, value in values])

    async def _set(self, _run: Run, words: list[str]) -> bytes:
        if len(words) % 2:
            return resp.error("ERR wrong number of arguments for 'RG.CONFIGSET' command")
        return _array([self._settings.set(name, value) for name, value in zip(words[::2], words[1::2], strict=True)])

    async def _lines(self, _run: Run, words: list[str]) -> bytes:
        after = words[0] if words else "0"
        if not after.isdecimal():
            return resp.error(f"ERR RG.PYLOGS [after] wants the number of a line, not {after[:40]!r}")
        return resp.encode(self._log.after(int(after)))

    async def _memory(self, _run: Run, _words: list[str]) -> bytes:
        """Returns the bytes of the worker process, which is here what RedisGears' interpreter is there."""
        now = int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()  # noqa: ASYNC240 - no disk
        peak = max(now, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)  # the kernel notes it now and then
        return resp.encode(resp.pairs(TotalAllocated=peak, PeakAllocated=peak, CurrAllocated=now))


def _array(replies: list[bytes]) -> bytes:
    return b"*%d\r\n" % len(replies) + b"".join(replies)
