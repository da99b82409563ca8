"""The RG.* commands: a client's words in, one RESP reply out. All run as coroutines in the loop."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager, nullcontext
from time import perf_counter
from typing import Any

from shardqa.module.worker import resp
from shardqa.module.worker.gears.cluster.distribution import NotDistributed
from shardqa.module.worker.gears.cluster.new_masters import Newcomers
from shardqa.module.worker.gears.cluster.pickling import CannotTravel
from shardqa.module.worker.gears.commands.cluster_commands import info_cluster, refresh_cluster
from shardqa.module.worker.gears.commands.execution_commands import ExecutionCommands
from shardqa.module.worker.gears.commands.pyexecute import BadArguments, pyexecute
from shardqa.module.worker.gears.commands.session_commands import dump_sessions, logs_after, memory_statistics, profile
from shardqa.module.worker.gears.pipeline.plan import RunPlan
from shardqa.module.worker.gears.pipeline.readers import text
from shardqa.module.worker.gears.pipeline.run import Run, Unset, run_steps
from shardqa.module.worker.gears.registry.registrations import Registration
from shardqa.module.worker.gears.registry.requirements import RequirementsFailed
from shardqa.module.worker.gears.registry.sessions import SessionExists, Sessions
from shardqa.module.worker.gears.registry.streams import Streams
from shardqa.module.worker.gears.settings import reply_to_get, reply_to_set
from shardqa.module.worker.shard import Shard

NAMES = frozenset(
    "RG." + name
    for name in (
        *("DUMPREGISTRATIONS", "UNREGISTER", "DUMPEXECUTIONS", "GETEXECUTION", "GETRESULTS", "GETRESULTSBLOCKING"),
        *("CLEARREGISTRATIONSSTATS", "PAUSEREGISTRATIONS", "UNPAUSEREGISTRATIONS"),
        *("DROPEXECUTION", "ABORTEXECUTION", "CONFIGGET", "CONFIGSET", "INFOCLUSTER", "REFRESHCLUSTER"),
        *("PYDUMPREQS", "PYLOGS", "PYSTATS"),
    )
)
WITH_STATISTICS = ("RG.DUMPREGISTRATIONS", "RG.DUMPEXECUTIONS", "RG.GETEXECUTION")  # RedisGears has none


class Commands:
    """Loop's thread only."""

    def __init__(self, shard: Shard, sessions: Sessions, newcomers: Newcomers) -> None:
        self._newcomers = newcomers
        self._shard = shard
        self._sessions = sessions
        self._executions = ExecutionCommands(shard)
        self._turns: dict[str, asyncio.Lock] = {}  # by id of registrations that are inorder
        self._running: Counter[str] = Counter()  # by registration id: what runs or waits for its turn
        shard.registrations.listen(lambda _: None, self._forget_turn)
        shard.registrations.count_queue(lambda registration: self._running[registration.id])
        self.streams = Streams(shard, self._run_batch)
        shard.registrations.listen(self.streams.begin, self.streams.end)
        sessions.distribution.before_unregister = self.streams.forget
        shard.inner.answer = self.run

    def _forget_turn(self, registration: Registration) -> None:
        self._turns.pop(registration.id, None)
        self._running = +self._running  # without those at 0

    async def run(self, run: Run, name: str, arguments: list[bytes]) -> bytes:
        """The reply of one command. Raises what a function raised."""
        try:
            return await self._run(run, name, arguments)
        except (BadArguments, SessionExists, CannotTravel, NotDistributed, RequirementsFailed) as error:
            return resp.error(f"ERR {error}")

    async def _run(self, run: Run, name: str, arguments: list[bytes]) -> bytes:
        match name:
            case "RG.PYEXECUTE":
                return await pyexecute(self._shard, self._sessions, run, arguments)
            case "RG.TRIGGER" | "RG.TRIGGERONKEY":
                return await self._trigger(run, name, arguments)
            case "RG._PEER":
                return await self._shard.peers.receive(arguments)
        words = [argument.decode("utf-8", "surrogateescape") for argument in arguments]
        statistics = [word.upper() for word in words[-2:]] == ["WITH", "STATISTICS"] and name in WITH_STATISTICS
        match name, words[:-2] if statistics else words:
            case "RG.DUMPREGISTRATIONS", []:
                return self._dump_registrations(statistics)
            case "RG.UNREGISTER", [id]:
                return await self._unregister(id)
            case "RG.CLEARREGISTRATIONSSTATS", []:
                self._shard.registrations.clear_statistics()
                return resp.OK
            case "RG.PAUSEREGISTRATIONS", [_, *_]:
                return self._pause(words, True)
            case "RG.UNPAUSEREGISTRATIONS", [_, *_]:
                return self._pause(words, False)
            case "RG.DUMPEXECUTIONS", []:
                return self._executions.dump(statistics)
            case "RG.GETEXECUTION", [id]:
                return await self._executions.get(id, None, statistics)
            case "RG.GETEXECUTION", [id, scope] if scope.upper() in ("SHARD", "CLUSTER"):
                return await self._executions.get(id, scope.upper(), statistics)
            case "RG.GETEXECUTION", [_, scope]:
                return resp.error(f"ERR {scope[:40]!r} is neither SHARD nor CLUSTER")
            case "RG.GETRESULTS", [id]:
                return self._executions.results(id)
            case "RG.GETRESULTSBLOCKING", [id]:
                return await self._executions.results_blocking(id)
            case "RG.DROPEXECUTION", [id]:
                return await self._executions.drop(id)
            case "RG.ABORTEXECUTION", [id]:
                return await self._executions.abort(id)
            case "RG.CONFIGGET", [_, *_]:
                return reply_to_get(self._shard.settings, words)
            case "RG.CONFIGSET", [_, _, *_] if len(words) % 2 == 0:
                return reply_to_set(self._shard.settings, words)
            case "RG.PYDUMPSESSIONS", _:
                return dump_sessions(self._sessions, words)
            case "RG.PYLOGS", []:
                return resp.encode(self._shard.ring.after(0))
            case "RG.PYLOGS", [after]:
                return logs_after(self._shard.ring, after)
            case "RG.PYDUMPREQS", []:
                return resp.encode(self._shard.requirements.dump())
            case "RG.PYSTATS", []:
                return memory_statistics()
            case "RG.PYPROFILE", _:
                return profile(self._shard.profiles, self._sessions, words)
            case "RG.INFOCLUSTER", []:
                return await info_cluster(self._shard)
            case "RG.REFRESHCLUSTER", []:
                return await refresh_cluster(self._shard, self._newcomers)
        if name in NAMES:
            return resp.error(f"ERR wrong number of arguments for '{name}' command")
        return resp.error(f"ERR the worker does not know {name[:80]!r}; module and worker differ in version")

    def _dump_registrations(self, statistics: bool) -> bytes:
        registrations = self._shard.registrations
        return resp.encode([r.dump(registrations.queue_of(r) if statistics else None) for r in registrations])

    async def _trigger(self, run: Run, name: str, arguments: list[bytes]) -> bytes:
        if len(arguments) < (1 if name == "RG.TRIGGER" else 2):
            return resp.error(f"ERR wrong number of arguments for '{name}' command")
        record = text(arguments)
        registration = await self._sessions.settled(lambda: self._shard.registrations.triggered_by(str(record[0])))
        if registration is None:
            return resp.error("ERR subcommand not found")
        registration.enter(run)
        results = await self._in_turn(run, registration, record)
        if results is None:
            return resp.error(run.errors[0])
        if run.reply is not Unset.UNSET:
            return resp.encode(run.reply)
        return resp.encode(results)

    async def _in_turn(self, run: Run, registration: Registration, record: Any) -> list[Any] | None:
        if not registration.in_order:
            return await self.run_registration(run, registration, [record])
        turn = self._turns.setdefault(registration.id, asyncio.Lock())
        with self._queued(registration):
            await turn.acquire()
        try:
            return await self.run_registration(run, registration, [record])
        finally:
            turn.release()

    @contextmanager
    def _queued(self, registration: Registration) -> Iterator[None]:
        self._running[registration.id] += 1
        try:
            yield
        finally:
            self._running[registration.id] -= 1

    async def run_registration(
        self,
        run: Run,
        registration: Registration,
        records: list[Any],
        *,
        kept: bool = False,
        in_queue: bool = False,
    ) -> list[Any] | None:
        """The records that these became, or None when a step failed (the run has the error).

        `kept`: RG.DUMPEXECUTIONS lists it, as nobody waits for its results. `in_queue`: the caller counts it there.
        """
        results = self._results(run, registration, registration.plan(records), kept)
        return await self.counted(run, registration, results, perf_counter(), in_queue)

    async def counted(
        self,
        run: Run,
        registration: Registration,
        ended: Coroutine[Any, Any, tuple[list[Any], list[str]]],
        started: float,
        in_queue: bool = False,
    ) -> list[Any] | None:
        """The same for a run that is there; `ended` gives its results and errors."""
        statistics = registration.statistics
        statistics.trigger()
        run.name, run.seconds = registration.title(), self._shard.seconds_of(registration)
        run.turns = self._shard.registrations.turns_of(registration)
        try:
            with nullcontext() if in_queue else self._queued(registration):
                results, errors = await ended
        except BaseException as error:
            statistics.broken(run, error)
            raise
        finally:
            self._shard.registrations.has_run(registration)
        statistics.finished(started, errors[0] if errors else None)
        if errors:
            self._shard.ring.add(errors[0], "error", run.name.decode("utf-8", "replace"))
        return None if errors else results

    async def _results(
        self, run: Run, registration: Registration, plan: RunPlan, kept: bool
    ) -> tuple[list[Any], list[str]]:
        session = self._sessions.get(registration.session)
        if session is not None and not plan.local and self._shard.cluster.enabled:
            return await self._sessions.runs.given(session, run, plan, registration.id)
        if not kept:
            return await run_steps(run, plan.all_steps(), plan.argument), run.errors
        executions, results = self._shard.executions, list[Any]()
        execution = executions.begin(registration.session, run, plan, kept=True, registration=registration.id)
        try:
            results = await run_steps(run, plan.all_steps(), plan.argument)
        finally:
            executions.finished(execution, results)
        return execution.results, execution.errors

    async def _run_batch(self, run: Run, registration: Registration, records: list[Any]) -> list[Any] | None:
        return await self.run_registration(run, registration, records, kept=True)

    async def _unregister(self, id: str) -> bytes:
        """On all shards; a shard that can't be reached keeps it, as its own list shows."""
        registration = self._shard.registrations.get(id)
        if registration is not None:
            await self.streams.forget(registration)
        if not self._sessions.unregister(id):
            return resp.error(f"ERR execution {id[:80]} does not exist; RG.DUMPREGISTRATIONS lists what does")
        await self._sessions.distribution.unregister(id)
        return resp.OK

    def _pause(self, ids: list[str], paused: bool) -> bytes:
        """All of them, or none and an error."""
        found = []
        for id in ids:
            registration = self._shard.registrations.get(id)
            if registration is None:
                return resp.error(f"ERR registration {id[:80]} does not exist; RG.DUMPREGISTRATIONS lists what does")
            if registration.reader != "StreamReader":
                return resp.error(f"ERR registration {id[:80]} can not be paused: it is no StreamReader")
            found.append(registration)
        for registration in found:
            if not paused:
                self.streams.unpause(registration)
            registration.paused = paused
        return resp.OK
