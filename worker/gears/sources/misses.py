"""GETs that missed: on their usual way through the loop, or in the thread that read them.

The second is for plain functions, which so wait for no thread to wake. The other reading thread goes on with the frames
meanwhile (socket_threads.py): a function that is slow or hangs holds up none of them, and ends at its deadline as it
does on the pool. Where runs take long, those behind them go to the pool for a while. Coroutines share state without
locks, so they stay in the loop's thread.
"""

import time
from contextvars import Context
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from shardqa.worker import resp
from shardqa.worker.gears.pipeline.readers import text
from shardqa.worker.gears.pipeline.run import Run, Unset, describe
from shardqa.worker.gears.pipeline.suspension import Suspended
from shardqa.worker.gears.pipeline.turns import Turns
from shardqa.worker.gears.registrations.plain_run import PlainRun, is_plain
from shardqa.worker.gears.registrations.registrations import Registration, Registrations
from shardqa.worker.gears.sessions.sessions import Sessions
from shardqa.worker.gears.sources.registration_runs import RegistrationRuns
from shardqa.worker.requests import Requests
from shardqa.worker.socket_threads import Work
from shardqa.worker.statistics import WorkerStatistics

LONG_RUN = 0.001  # seconds of a run beside which a thread's waking does not count
IN_A_ROW = 3  # long runs; single ones are those of a busy machine
POOL_SECONDS = 1.0  # seconds that a registration's misses then go to the pool


@dataclass(slots=True)
class Hosted:
    """A registration whose function the reading thread may run. The computing thread changes it."""

    registration: Registration
    long_runs: int = 0  # in a row
    paused_until: float = 0.0  # of time.monotonic()

    def ran(self, seconds: float) -> None:
        self.long_runs = self.long_runs + 1 if seconds > LONG_RUN else 0
        if self.long_runs >= IN_A_ROW:
            self.paused_until = time.monotonic() + POOL_SECONDS


@dataclass(eq=False)
class Misses:
    """The misses. `answer` runs in the loop's thread, `claim`, `forget` and `forget_session` in the leading one."""

    _registrations: Registrations
    _sessions: Sessions
    _runs: RegistrationRuns
    _statistics: WorkerStatistics
    _requests: Requests
    _plain: dict[str, Hosted] = field(default_factory=dict)  # by registration id
    _now: Registration | None = None  # runs in a reading thread

    def __post_init__(self) -> None:
        self._registrations.listen(self._added, lambda registration: self.forget(registration.id))
        self._registrations.count_queue(lambda registration: int(registration is self._now))

    async def answer(self, run: Run, words: list[bytes]) -> bytes:
        """Answers a MISS: registration id, key, command, argument…"""
        self._statistics.add("misses")
        id = words[0].decode()
        registration = await self._sessions.replays.settled(lambda: self._registrations.get(id))
        if registration is None:
            why = self._sessions.replays.failed.get(id)
            return resp.NIL if why is None else resp.error(f"ERR registration {id} is not active: {why}")
        record = _entered(run, registration, words)
        await self._runs.run(run, registration, [record])
        return _reply_of(run)

    def claim(self, run: Run, words: list[bytes]) -> Work | None:
        """Returns the work of a miss for the calling thread; None where the loop has to do it."""
        host = self._plain.get(words[0].decode())
        if host is None or host.paused_until > time.monotonic():
            return None
        turns = self._registrations.turns_of(host.registration)
        if turns is None or not turns.take_now():
            return None
        if not self._requests.computing.acquire(blocking=False):
            turns.give()
            return None
        self._requests.running[run.request] = run  # at once: the next frame may cancel it
        return partial(self._run_now, run, host, turns, words)

    def forget(self, id: str) -> None:
        """Forgets a registration that goes, so that no run overtakes what the loop has still to do."""
        self._plain.pop(id, None)

    def forget_session(self, id: str) -> None:
        """Forgets the registrations of a session that comes anew."""
        for host in list(self._plain.values()):
            if host.registration.session == id:
                self.forget(host.registration.id)

    def _added(self, registration: Registration) -> None:
        if registration.reader == "KeysReader" and registration.hooked and is_plain(registration):
            self._plain[registration.id] = Hosted(registration)

    def _run_now(self, run: Run, host: Hosted, turns: Turns, words: list[bytes]) -> None:
        self._statistics.add("misses")
        registration, context, reply = host.registration, Context(), b""
        registration.statistics.trigger()
        start, self._now = time.perf_counter(), registration
        try:
            plain = self._runs.plain_run(registration, run, _entered(run, registration, words))
            outcome = context.run(plain.begin)
            if isinstance(outcome, Suspended):
                context.run(self._requests.spawn, run, self._rest(plain, outcome))
            else:
                reply = _reply_of(run)
        except BaseException as error:  # noqa: BLE001 - sys.exit of a function must not end the worker
            reply = resp.error(describe(error))
        finally:
            self._now = None
            host.ran(time.perf_counter() - start)
            turns.give()
            self._requests.computing.release()  # before the reply: what that client sends next may be claimed, too
        if reply:
            self._requests.running.pop(run.request, None)
            self._requests.send(run.request, reply)

    async def _rest(self, plain: PlainRun, suspension: Suspended) -> bytes:
        await self._runs.finish(plain, suspension)
        return _reply_of(plain.run)


def _entered(run: Run, registration: Registration, words: list[bytes]) -> dict[str, Any]:
    """Enters the run of a miss; returns its record."""
    key, run.command = text(words[1]), text(words[2:])
    registration.enter(run)
    return {"key": key, "value": None, "type": "empty", "event": "keymiss"}


def _reply_of(run: Run) -> bytes:
    if run.errors:
        return resp.error(run.errors[0])
    return resp.NIL if run.reply is Unset.UNSET else resp.encode(run.reply)
