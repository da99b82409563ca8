"""RG.DUMPEXECUTIONS and the commands that name one execution."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from shardqa.module.worker import resp
from shardqa.module.worker.gears.pipeline.execution_list import NO_CLUSTER, Execution
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
        return resp.encode([_listed(execution, statistics) for execution in runs])

    def results(self, id: str) -> bytes:
        execution = self._shard.executions.get(id)
        if execution is None:
            return resp.error(MISSING)
        return resp.encode([execution.results, execution.errors]) if execution.is_done() else resp.error(RUNNING)

    async def results_blocking(self, id: str) -> bytes:
        execution = self._shard.executions.get(id)
        if execution is None:
            return resp.error(MISSING)
        await execution.wait()
        return resp.encode([execution.results, execution.errors])

    async def drop(self, id: str) -> bytes:
        execution = self._shard.executions.get(id)
        if execution is None:
            return resp.error(MISSING)
        if not execution.is_done():
            return resp.error("ERR can not drop a running execution; RG.ABORTEXECUTION ends it")
        self._shard.executions.drop(execution)
        await self._tell_others("DROP", id)
        return resp.OK

    async def abort(self, id: str) -> bytes:
        execution = self._shard.executions.get(id)
        if execution is None or execution.is_done():
            return resp.error("ERR execution does not exist or already finished; RG.DUMPEXECUTIONS lists what runs")
        execution.run.cancel()
        await self._tell_others("ABORTED", id)
        await execution.wait()
        return resp.OK

    async def get(self, id: str, scope: str | None, statistics: bool) -> bytes:
        execution = self._shard.executions.get(id)
        if execution is None:
            return resp.error(MISSING)
        plans = [self._plan(execution, statistics)]
        if scope != "SHARD" and self._shard.cluster.enabled and execution.kept:
            others = await self._shard.cluster.other_masters()
            for reply in await self._shard.peers.send_all(others, "PLAN", id, "STATISTICS" if statistics else ""):
                if isinstance(reply, bytes):
                    plans.append(json.loads(reply))
        return resp.encode(plans)

    def _plan(self, execution: Execution, statistics: bool) -> list[Any]:
        cluster, done = self._shard.cluster, execution.is_done()
        others = len(execution.part.members) - 1 if execution.part is not None else 0
        described = [_step(step) for step in reversed(execution.plan.all_steps())]
        return [
            *("shard_id", cluster.node if cluster.enabled else NO_CLUSTER),
            "execution_plan",
            [
                *("status", execution.status, "shards_received", others, "shards_completed", others if done else 0),
                *("results", len(execution.results) if done else -1, "errors", execution.errors),
                *("total_duration", round(execution.milliseconds)),
                *("read_duration", round(execution.read_milliseconds)),
                *("steps", described, *(_measured(execution) if statistics else ())),
            ],
        ]

    async def _tell_others(self, verb: str, id: str) -> None:
        if self._shard.cluster.enabled:
            await self._shard.peers.send_all(await self._shard.cluster.other_masters(), verb, id)

    async def _on_plan(self, _sender: str, arguments: list[bytes]) -> bytes:
        execution = self._shard.executions.get(arguments[0].decode())
        if execution is None:
            return resp.NIL
        return resp.bulk(json.dumps(self._plan(execution, b"STATISTICS" in arguments)).encode())

    async def _on_drop(self, _sender: str, arguments: list[bytes]) -> bytes:
        execution = self._shard.executions.get(arguments[0].decode())
        if execution is not None and execution.is_done():
            self._shard.executions.drop(execution)
        return resp.OK

    async def _on_abort(self, _sender: str, arguments: list[bytes]) -> bytes:
        execution = self._shard.executions.get(arguments[0].decode())
        if execution is not None and not execution.is_done():
            execution.run.cancel()
        return resp.OK


def _listed(execution: Execution, statistics: bool) -> list[Any]:
    """What RedisGears has not stands last."""
    listed = ["executionId", execution.id, "status", execution.status, "registered", int(bool(execution.registration))]
    return [*listed, *_measured(execution), "session", execution.session] if statistics else listed


def _measured(execution: Execution) -> list[Any]:
    elapsed = round(execution.elapsed())
    return ["records", execution.records(), "errorCount", execution.error_count(), "elapsedMS", elapsed]


def _step(step: GearsStep) -> list[Any]:
    function = step.function
    name = getattr(function, "__name__", step.kind.value) if function is not None else step.kind.value
    return ["type", step.kind.value, "duration", 0, "name", name, "arg", "" if function is None else repr(function)]
