"""Runs over many records: here, or on every master of the cluster at once.

A run of mode 'async' sends its own script to the other masters with the word PARTIAL; each runs its part and
answers with its records, which travel as JSON; the counts are summed and the remaining steps run here.
"""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

import orjson

from shardqa.module.worker.gears import readers
from shardqa.module.worker.gears.builder import RunPlan
from shardqa.module.worker.gears.execution import Execution, Step, finish, run_chunks

if TYPE_CHECKING:
    from shardqa.module.worker.gears.sessions import Session

PARTIAL = "SHARDQA.PARTIAL"  # argument of RG.PYEXECUTE between shards
RUN_TIMEOUT = 3600.0  # seconds another shard may take for its part


async def run_script(session: Session, execution: Execution, plan: RunPlan) -> tuple[list[Any], list[str]]:
    """(results, errors) of a script's own run."""
    shard = session.shard
    if plan.local or not shard.cluster.enabled:
        return await run_here(session, execution, plan)
    asked = shard.threads.task(shard.cluster.ask_peers(("RG.PYEXECUTE", session.code, PARTIAL), RUN_TIMEOUT))
    try:
        records, rest = await _part(session, execution, plan)
    except BaseException:
        asked.cancel()
        raise
    for reply in await asked:
        if isinstance(reply, Exception):
            execution.failed(reply)
            continue
        part = orjson.loads(reply)
        execution.errors += part["errors"]
        if plan.collect:
            records += [_unwire(record) for record in part["records"]]
    return await _finished(execution, plan, rest, records)


async def run_here(session: Session, execution: Execution, plan: RunPlan) -> tuple[list[Any], list[str]]:
    """The same on this shard alone; for runs inside functions, whose closures can't travel."""
    if not plan.local and session.shard.cluster.enabled and session.plan is not plan:
        raise ValueError("a run inside a function stays on its shard: say mode='async_local'")
    records, rest = await _part(session, execution, plan)
    return await _finished(execution, plan, rest, records)


async def run_part(session: Session, execution: Execution, plan: RunPlan) -> bytes:
    """This shard's part of a run that another shard leads, as it travels."""
    records, _ = await _part(session, execution, plan)
    wired = []
    for record in records:
        try:
            wired.append(_wire(record))
        except TypeError as error:
            execution.failed(error)
    return orjson.dumps({"records": wired, "errors": execution.errors})


async def _part(session: Session, execution: Execution, plan: RunPlan) -> tuple[list[Any], tuple[Step, ...]]:
    chunks = readers.chunks(session.shard, execution, plan)
    records, rest = await run_chunks(execution, plan.steps, chunks)
    return records, tuple(rest)


async def _finished(
    execution: Execution, plan: RunPlan, rest: tuple[Step, ...], records: list[Any]
) -> tuple[list[Any], list[str]]:
    results = await finish(execution, rest, records)
    errors = list(execution.errors)
    if execution.dropped_errors:
        errors.append(f"ERR and {execution.dropped_errors} more errors")
    return [convert(r) for r in results] if plan.convert else results, errors


def convert(record: Any) -> Any:
    """convertToStr: str() of a record; bytes stay bytes, so that data is never spelled as Python source."""
    return record if isinstance(record, str | bytes) else str(record)


def _wire(value: Any) -> Any:
    match value:
        case None | bool() | int() | float() | str():
            return value
        case bytes():
            return {"b": base64.b85encode(value).decode()}
        case list():
            return [_wire(item) for item in value]
        case tuple():
            return {"t": [_wire(item) for item in value]}
        case dict():
            return {"d": [[_wire(k), _wire(v)] for k, v in value.items()]}
        case _:
            raise TypeError(f"a record of type {type(value).__name__} can't travel between shards; map it to str first")


def _unwire(value: Any) -> Any:
    if isinstance(value, list):
        return [_unwire(item) for item in value]
    if not isinstance(value, dict):
        return value
    ((kind, content),) = value.items()
    if kind == "b":
        return base64.b85decode(content)
    if kind == "t":
        return tuple(_unwire(item) for item in content)
    return {_unwire(k): _unwire(v) for k, v in content}
