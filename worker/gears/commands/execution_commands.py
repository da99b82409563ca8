"""RG.DUMPEXECUTIONS and the commands that name one execution."""

import json
from functools import partial
from typing import Any

from shardqa.worker import resp
from shardqa.worker.gears.cluster.peers import Neighbours
from shardqa.worker.gears.commands.rg_commands import RgCommand
from shardqa.worker.gears.pipeline.execution_list import NO_CLUSTER, Execution, Executions
from shardqa.worker.gears.pipeline.run import Run
from shardqa.worker.gears.pipeline.steps import GearsStep
from shardqa.worker.gears.sessions.script import BadArguments

RUNNING = "ERR execution is still running; RG.GETRESULTSBLOCKING waits for it"


class ExecutionCommands:
    """The commands of executions. Loop's thread."""

    def __init__(self, executions: Executions, neighbours: Neighbours) -> None:
        self._executions = executions
        self._cluster = neighbours.cluster
        self._peers = neighbours.peers
        self._peers.handle_with(PLAN=self._on_plan, DROP=self._on_drop, ABORTED=self._on_abort)

    def table(self) -> dict[str, RgCommand]:
        return {
            "RG.DUMPEXECUTIONS": RgCommand(partial(self._dump, False)),
            "RG.DUMPEXECUTIONS WITH STATISTICS": RgCommand(partial(self._dump, True)),
            "RG.GETEXECUTION": RgCommand(partial(self._get, False), 1, 2),
            "RG.GETEXECUTION WITH STATISTICS": RgCommand(partial(self._get, True), 1, 2),
            "RG.GETRESULTS": RgCommand(self._results, 1, 1),
            "RG.GETRESULTSBLOCKING": RgCommand(self._results_blocking, 1, 1),
            "RG.DROPEXECUTION": RgCommand(self._drop, 1, 1),
            "RG.ABORTEXECUTION": RgCommand(self._abort, 1, 1),
        }

    def _known(self, id: str) -> Execution:
        """Returns the execution. Raises BadArguments for an unknown id."""
        if (execution := self._executions.get(id)) is None:
            raise BadArguments("execution does not exist; RG.DUMPEXECUTIONS lists what does")
        return execution

    async def _dump(self, statistics: bool, _run: Run, _words: list[str]) -> bytes:
        self._executions.list_waiting()
        return resp.encode([_listed(execution, statistics) for execution in reversed(self._executions.all())])

    async def _results(self, _run: Run, words: list[str]) -> bytes:
        execution = self._known(words[0])
        return resp.encode([execution.results, execution.errors]) if execution.is_done() else resp.error(RUNNING)

    async def _results_blocking(self, _run: Run, words: list[str]) -> bytes:
        execution = self._known(words[0])
        await execution.wait()
        return resp.encode([execution.results, execution.errors])

    async def _drop(self, _run: Run, words: list[str]) -> bytes:
        execution = self._known(words[0])
        if not execution.is_done():
            return resp.error("ERR can not drop a running execution; RG.ABORTEXECUTION ends it")
        self._executions.drop(execution)
        await self._tell_others("DROP", execution.id)
        return resp.OK

    async def _abort(self, _run: Run, words: list[str]) -> bytes:
        execution = self._known(words[0])
        if not execution.is_done():
            self._executions.abort(execution)
            await self._tell_others("ABORTED", execution.id)
            await execution.wait()
        return resp.OK

    async def _get(self, statistics: bool, _run: Run, words: list[str]) -> bytes:
        id, scope = words[0], words[1] if len(words) == 2 else "CLUSTER"
        if scope.upper() not in ("SHARD", "CLUSTER"):
            return resp.error(f"ERR {scope[:40]!r} is neither SHARD nor CLUSTER")
        execution = self._known(id)
        plans = [self._plan(execution, statistics)]
        if scope.upper() == "CLUSTER" and self._cluster.enabled and execution.keeps_results:
            others = await self._cluster.other_masters()
            for reply in await self._peers.send_all(others, "PLAN", id, "STATISTICS" if statistics else ""):
                if isinstance(reply, bytes):
                    plans.append(json.loads(reply))
        return resp.encode(plans)

    def _plan(self, execution: Execution, statistics: bool) -> list[Any]:
        cluster, is_done, others = self._cluster, execution.is_done(), execution.members - 1
        plan = resp.pairs(
            status=execution.status,
            shards_received=others,
            shards_completed=others if is_done else 0,
            results=len(execution.results) if is_done else -1,
            errors=execution.errors,
            total_duration=round(execution.milliseconds),
            read_duration=round(execution.read_milliseconds),
            steps=[_step(step) for step in reversed(execution.plan.all_steps())],
        )
        node = cluster.node if cluster.enabled else NO_CLUSTER
        return resp.pairs(shard_id=node, execution_plan=plan + (_measured(execution) if statistics else []))

    async def _tell_others(self, verb: str, id: str) -> None:
        if self._cluster.enabled:
            await self._peers.send_all(await self._cluster.other_masters(), verb, id)

    async def _on_plan(self, _sender: str, arguments: list[bytes]) -> bytes:
        execution = self._executions.get(arguments[0].decode())
        if execution is None:
            return resp.NIL
        return resp.bulk(json.dumps(self._plan(execution, b"STATISTICS" in arguments)).encode())

    async def _on_drop(self, _sender: str, arguments: list[bytes]) -> bytes:
        execution = self._executions.get(arguments[0].decode())
        if execution is not None and execution.is_done():
            self._executions.drop(execution)
        return resp.OK

    async def _on_abort(self, _sender: str, arguments: list[bytes]) -> bytes:
        execution = self._executions.get(arguments[0].decode())
        if execution is not None and not execution.is_done():
            execution.run.cancel()
        return resp.OK


def _listed(execution: Execution, statistics: bool) -> list[Any]:
    """Returns an entry of RG.DUMPEXECUTIONS; fields that RedisGears lacks stand last."""
    has_registration = int(bool(execution.registration))
    fields = resp.pairs(executionId=execution.id, status=execution.status, registered=has_registration)
    return [*fields, *_measured(execution), "session", execution.session] if statistics else fields


def _measured(execution: Execution) -> list[Any]:
    milliseconds = round(execution.elapsed())
    fields = resp.pairs(records=execution.records(), errorCount=execution.error_count(), elapsedMS=milliseconds)
    return [*fields, "aborted", int(execution.aborted)]


def _step(step: GearsStep) -> list[Any]:
    function = step.function
    name = getattr(function, "__name__", step.kind.value) if function is not None else step.kind.value
    return resp.pairs(type=step.kind.value, duration=0, name=name, arg="" if function is None else repr(function))
