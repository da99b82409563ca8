"""RG.DUMPEXECUTIONS and the commands that name one execution."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from shardqa.module.worker import resp
from shardqa.module.worker.gears.pipeline.execution_list import NO_CLUSTER, Run
from shardqa.module.worker.gears.pipeline.steps import GearsStep

if TYPE_CHECKING:
    from shardqa.module.worker.shard import Shard

MISSING = "ERR execution does not exist; RG.DUMPEXECUTIONS lists what does"
RUNNING = "ERR execution is still running; RG.GETRESULTSBLOCKING waits for it"


class ExecutionCommands:
    """Loop's thread."""

    def __init__(self, shard: Shard) -> None:
        self._shard = shard
        shard.peers.handle_with("PLAN", self._on_plan)
        shard.peers.handle_with("DROP", self._on_drop)
        shard.peers.handle_with("ABORTED", self._on_abort)

    def dump(self, statistics: bool) -> bytes:
        runs = reversed(self._shard.executions.all())
        return resp.encode([_listed(run, statistics) for run in runs])

    def results(self, id: str) -> bytes:
        run = self._shard.executions.get(id)
        if run is None:
            return resp.error(MISSING)
        return resp.encode([run.results, run.errors]) if run.is_done() else resp.error(RUNNING)

    async def results_blocking(self, id: str) -> bytes:
        run = self._shard.executions.get(id)
        if run is None:
            return resp.error(MISSING)
        await run.wait()
        return resp.encode([run.results, run.errors])

    async def drop(self, id: str) -> bytes:
        run = self._shard.executions.get(id)
        if run is None:
            return resp.error(MISSING)
        if not run.is_done():
            return resp.error("ERR can not drop a running execution; RG.ABORTEXECUTION ends it")
        self._shard.executions.drop(run)
        await self._tell_others("DROP", id)
        return resp.OK

    async def abort(self, id: str) -> bytes:
        run = self._shard.executions.get(id)
        if run is None or run.is_done():
            return resp.error("ERR execution does not exist or already finished; RG.DUMPEXECUTIONS lists what runs")
        run.execution.cancel()
        await self._tell_others("ABORTED", id)
        await run.wait()
        return resp.OK

    async def get(self, id: str, scope: str | None, statistics: bool) -> bytes:
        run = self._shard.executions.get(id)
        if run is None:
            return resp.error(MISSING)
        plans = [self._plan(run, statistics)]
        if scope != "SHARD" and self._shard.cluster.enabled and run.kept:
            others = await self._shard.cluster.other_masters()
            for reply in await self._shard.peers.send_all(others, "PLAN", id, "STATISTICS" if statistics else ""):
                if isinstance(reply, bytes):
                    plans.append(json.loads(reply))
        return resp.encode(plans)

    def _plan(self, run: Run, statistics: bool) -> list[Any]:
        cluster = self._shard.cluster
        others = len(run.part.members) - 1 if run.part is not None else 0
        described = [_step(step) for step in reversed(run.plan.all_steps())]
        return [
            *("shard_id", cluster.node if cluster.enabled else NO_CLUSTER),
            "execution_plan",
            [
                *("status", run.status, "shards_received", others, "shards_completed", others if run.is_done() else 0),
                *("results", len(run.results) if run.is_done() else -1, "errors", run.errors),
                *("total_duration", round(run.milliseconds)),
                *("read_duration", round(run.read_milliseconds)),
                *("steps", described, *(_measured(run) if statistics else ())),
            ],
        ]

    async def _tell_others(self, verb: str, id: str) -> None:
        if self._shard.cluster.enabled:
            await self._shard.peers.send_all(await self._shard.cluster.other_masters(), verb, id)

    async def _on_plan(self, _sender: str, arguments: list[bytes]) -> bytes:
        run = self._shard.executions.get(arguments[0].decode())
        return resp.NIL if run is None else resp.bulk(json.dumps(self._plan(run, b"STATISTICS" in arguments)).encode())

    async def _on_drop(self, _sender: str, arguments: list[bytes]) -> bytes:
        run = self._shard.executions.get(arguments[0].decode())
        if run is not None and run.is_done():
            self._shard.executions.drop(run)
        return resp.OK

    async def _on_abort(self, _sender: str, arguments: list[bytes]) -> bytes:
        run = self._shard.executions.get(arguments[0].decode())
        if run is not None and not run.is_done():
            run.execution.cancel()
        return resp.OK


def _listed(run: Run, statistics: bool) -> list[Any]:
    """What RedisGears has not stands last."""
    listed = ["executionId", run.id, "status", run.status, "registered", int(bool(run.registration))]
    return [*listed, *_measured(run), "session", run.session] if statistics else listed


def _measured(run: Run) -> list[Any]:
    return ["records", run.records(), "errorCount", run.error_count(), "elapsedMS", round(run.elapsed())]


def _step(step: GearsStep) -> list[Any]:
    function = step.function
    name = getattr(function, "__name__", step.kind.value) if function is not None else step.kind.value
    return ["type", step.kind.value, "duration", 0, "name", name, "arg", "" if function is None else repr(function)]
