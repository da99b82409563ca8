"""One shard's part of an execution: its stages at work, side by side.

A stage is the steps between two global ones. The first reads, each further one takes what its inbox gets; what a stage
gives goes to the initiator (`collect`), to the owner of its key (`repartition`), or is a result that stays here. Their
functions take turns, as in RedisGears: what one of them keeps in a global until it is answered, no other one changes.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from time import perf_counter
from typing import Any

from redis.crc import key_slot

from shardqa.topology import SLOTS, Node
from shardqa.worker.gears.cluster.exchange import Far, Inbox, Near, Out
from shardqa.worker.gears.pipeline.chain import Chain
from shardqa.worker.gears.pipeline.execution_list import Execution
from shardqa.worker.gears.pipeline.plan import GIVEN
from shardqa.worker.gears.pipeline.readers import Readers, Share
from shardqa.worker.gears.pipeline.steps import GLOBAL, GearsStep, Kind
from shardqa.worker.gears.pipeline.sugar import not_async
from shardqa.worker.gears.sessions.session import Session
from shardqa.worker.threads import Cancelled


@dataclass(frozen=True, slots=True)
class Member:
    """A shard that takes part in an execution."""

    id: str  # of its master
    slots: tuple[tuple[int, int], ...]


def owners(members: tuple[Member, ...]) -> list[int]:
    """Returns, for each slot, the index of its owner as the initiator saw it: so equal keys meet on one shard.

    Slots that nobody owned go round robin.
    """
    table = [slot % len(members) for slot in range(SLOTS)]
    for index, member in enumerate(members):
        for first, last in member.slots:
            table[first : last + 1] = [index] * (last - first + 1)
    return table


@dataclass(frozen=True, slots=True)
class Stage:
    """The steps between two global ones, and the global step that their records go to (None: they are the results)."""

    steps: tuple[GearsStep, ...]
    then: GearsStep | None


def stages(steps: Sequence[GearsStep]) -> list[Stage]:
    stages_before: list[Stage] = []
    stage: list[GearsStep] = []
    for step in steps:
        if step.kind in GLOBAL:
            stages_before.append(Stage(tuple(stage), step))
            stage = []
        else:
            stage.append(step)
    return [*stages_before, Stage(tuple(stage), None)]


@dataclass(frozen=True, slots=True)
class PartLinks:
    """The links of a part: to its first records, and to the other parts."""

    node: str  # id of this shard's
    readers: Readers
    send_records: Callable[[ExecutionPart, str, int, bool, list[Any]], Awaitable[int]]
    read_slot: Callable[[ExecutionPart, int, Node], Awaitable[list[Any] | None]]


class ExecutionPart:
    """One shard's part. It is made before a record can come; `results` is called once."""

    def __init__(
        self, session: Session, execution: Execution, members: tuple[Member, ...], initiator: str, links: PartLinks
    ) -> None:
        self.id = execution.id
        self.session = session
        self.execution = execution
        self.run = execution.run
        self.plan = execution.plan
        self.members = members
        self.initiator = initiator  # node id
        self.lost: set[str] = set()  # node ids that left the execution
        self._links = links
        self._own = links.node
        self._turn = asyncio.Lock()  # of functions
        self._stages = stages(self.plan.all_steps())
        self._inboxes = [Inbox(self._sources(stage)) for stage in self._stages[:-1]]  # of the stages from the second on
        self._owners = owners(members) if any(self._repartitions(stage) for stage in self._stages) else []
        execution.members, execution.records_read = len(members), 0

    def inbox(self, number: int) -> Inbox | None:
        """Returns the inbox of the stage of this number; the first stage, number 0, has none."""
        return self._inboxes[number - 1] if 1 <= number <= len(self._inboxes) else None

    def lose(self, node: str) -> None:
        """Takes a shard out: nothing is expected from it or sent to it."""
        self.lost.add(node)
        for inbox in self._inboxes:
            inbox.end(node)

    def moved(self) -> int:
        """Returns a number that rises with records read and functions begun."""
        return (self.execution.records_read or 0) + self.run.records

    async def results(self) -> list[Any]:
        """Returns the results of this shard. Raises what a reader raises, and CancelledError."""
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(self._run_stage(number)) for number in range(len(self._stages))]
        return tasks[-1].result()

    @staticmethod
    def _repartitions(stage: Stage) -> bool:
        return stage.then is not None and stage.then.kind is Kind.REPARTITION

    def _sources(self, stage: Stage) -> list[str]:
        """Returns the shards that send records to the stage after this one."""
        if not self._repartitions(stage) and self._own != self.initiator:
            return []
        return [member.id for member in self.members]

    async def _run_stage(self, number: int) -> list[Any]:
        stage = self._stages[number]
        chain = Chain(self.run, stage.steps)
        results: list[Any] = []
        outs = self._outs(number, stage)
        try:
            async for records in self._records(number):
                async with self._turn:
                    rest = await chain.feed(records)
                await self._pass_on(stage, outs, rest, results)
            async with self._turn:
                rest = await chain.end()
            await self._pass_on(stage, outs, rest, results)
            for out in outs.values():
                await out.close()
        except BaseException:
            for out in outs.values():
                if isinstance(out, Far):
                    await out.cancel()
            raise
        return results

    async def _records(self, number: int) -> AsyncIterator[list[Any]]:
        if number > 0:
            async for records in self._inboxes[number - 1].batches():
                yield records
            return
        if self.plan.reader == GIVEN and self._own != self.initiator:
            return
        start, execution = perf_counter(), self.execution
        own = next(member.slots for member in self.members if member.id == self._own)
        share = Share(own, None if self.plan.local else partial(self._links.read_slot, self))
        async for records in self._links.readers.chunks(self.run, self.plan, share):
            execution.read_milliseconds += (perf_counter() - start) * 1000
            execution.records_read = (execution.records_read or 0) + len(records)
            yield records
            start = perf_counter()
        execution.read_milliseconds += (perf_counter() - start) * 1000

    def _outs(self, number: int, stage: Stage) -> dict[str, Out]:
        """Returns the ways that records of this stage may take, by node id."""
        if stage.then is None:
            return {}
        targets = [m.id for m in self.members] if self._repartitions(stage) else [self.initiator]
        return {target: self._out(number + 1, target) for target in targets}

    def _out(self, number: int, target: str) -> Out:
        if target == self._own:
            return Near(self._inboxes[number - 1], self._own)

        async def send(last: bool, records: list[Any]) -> int:
            return await self._links.send_records(self, target, number, last, records)

        return Far(send, lambda: target in self.lost, self.run.failed)

    async def _pass_on(self, stage: Stage, outs: dict[str, Out], records: list[Any], results: list[Any]) -> None:
        if not records:
            return
        if stage.then is None:
            results += records
        elif stage.then.kind is Kind.COLLECT:
            await outs[self.initiator].put(records)
        else:
            for target, batch in (await self._targets(stage.then, records)).items():
                await outs[target].put(batch)

    async def _targets(self, step: GearsStep, records: list[Any]) -> dict[str, list[Any]]:
        async with self._turn:
            return await self.run.threads.in_pool(self.run, self._by_target, step, records)

    def _by_target(self, step: GearsStep, records: list[Any]) -> dict[str, list[Any]]:
        assert step.function is not None
        by_target: dict[str, list[Any]] = {}
        for record in records:
            try:
                key = not_async(step.function(record), "the extractor of repartition")
                target = self.members[self._owners[slot_of(key)]].id
            except Cancelled:
                raise
            except BaseException as error:  # noqa: BLE001 - sys.exit of a function must not end the worker
                self.run.failed(error)
            else:
                by_target.setdefault(target, []).append(record)
        return by_target


def slot_of(key: Any) -> int:
    data = key if isinstance(key, bytes) else str(key).encode("utf-8", "surrogatepass")
    return int(key_slot(data))
