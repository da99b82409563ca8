"""An execution across the cluster: the initiating worker starts a part on every master and waits for all of them.

Messages (peers.py): RUN starts a part, RECORDS carries a batch to a stage of another part, FINISHED tells the initiator
that a part is done and its errors, LOST tells the others that a shard left, ABORT ends a part, ALIVE asks whether an
execution is known and how far it is. Both sides ask ALIVE from time to time: a shard that died, or whose worker was
started anew, leaves the execution with an error, all leave one that stands still; a part whose initiator is gone ends.

Loop's thread only.
"""

import asyncio
import json
from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any

from redis import ResponseError

from shardqa.topology import Node
from shardqa.worker import resp
from shardqa.worker.gears.cluster.exchange import FULL, TAKEN, UNKNOWN
from shardqa.worker.gears.cluster.execution_part import ExecutionPart, Member, PartLinks
from shardqa.worker.gears.cluster.peers import REPLY_SECONDS, Neighbours
from shardqa.worker.gears.pipeline.execution_list import Execution
from shardqa.worker.gears.pipeline.plan import GIVEN_TO_ALL, RunPlan
from shardqa.worker.gears.pipeline.readers import Readers
from shardqa.worker.gears.pipeline.run import MAX_ERRORS, Run, current, describe, enter
from shardqa.worker.gears.pipeline.worker_log import WorkerLog
from shardqa.worker.gears.registrations.registry import Registry
from shardqa.worker.gears.sessions.pickling import PYTHON, pack, pack_each, unpack
from shardqa.worker.gears.sessions.session import Session
from shardqa.worker.gears.sessions.sessions import Sessions
from shardqa.worker.io import Io

ALIVE_EVERY = 2.0  # seconds between two questions whether the others are there
GONE_AFTER = 10.0  # seconds without an answer after which a shard counts as gone
TOLD_WITHIN = 0.7  # of the time that a client waits: it hears which shard it was
IDLE = ResponseError("Execution max idle reached")  # RedisGears' words


class Coordination:
    def __init__(self, io: Io, neighbours: Neighbours, registry: Registry, log: WorkerLog, sessions: Sessions) -> None:
        self._threads = io.threads
        self._cluster = neighbours.cluster
        self._peers = neighbours.peers
        self._registrations = registry.registrations
        self._executions = registry.executions
        self._log = log
        self._sessions = sessions
        self._readers = Readers(io.calls, self._cluster)
        self._links = PartLinks(self._cluster.node, self._readers, self._send_records, self._read_slot)
        self._parts: dict[str, ExecutionPart] = {}  # by execution id: those at work on this shard
        # of the initiator: execution id -> node id -> its part is done
        self._finished: dict[str, dict[str, asyncio.Event]] = {}
        self._peers.handle_with(RUN=self._on_run, RECORDS=self._on_records, FINISHED=self._on_finished)
        self._peers.handle_with(READ=self._on_read, LOST=self._on_lost, ABORT=self._on_abort, ALIVE=self._on_alive)

    def sessions(self) -> list[Session]:
        """Returns the sessions of executions at work on this shard."""
        return list(dict.fromkeys(part.session for part in self._parts.values()))

    async def run(self, session: Session, execution: Execution) -> list[Any]:
        """Returns this shard's results once all parts are done. Raises CannotTravel, and what a reader raises."""
        cluster, plan, registration = self._cluster, execution.plan, execution.registration
        others = [] if plan.local else await cluster.other_masters()
        members = (Member(cluster.node, cluster.own_slots()), *(Member(node.id, node.slots) for node in others))
        payload = pack(session, _records_of(plan) if registration else plan) if others else b""
        part = ExecutionPart(session, execution, members, cluster.node, self._links)
        self._parts[execution.id] = part
        self._finished[execution.id] = {node.id: asyncio.Event() for node in others}
        try:
            return await self._lead(part, others, payload, execution.keeps_results)
        except BaseException:
            self._threads.task(self._peers.send_all(others, "ABORT", execution.id))
            raise
        finally:
            del self._parts[execution.id], self._finished[execution.id]

    async def _lead(
        self, part: ExecutionPart, others: Sequence[Node], payload: bytes, keeps_results: bool
    ) -> list[Any]:
        if others:
            await self._start_others(part, others, payload, keeps_results)
        watch = self._threads.task(self._watch_others(part, others)) if others else None
        try:
            results = await part_results(part)
            for event in self._finished[part.id].values():
                await event.wait()
            return results
        finally:
            if watch is not None:
                watch.cancel()

    async def _start_others(
        self, part: ExecutionPart, others: Sequence[Node], payload: bytes, keeps_results: bool
    ) -> None:
        members = json.dumps([asdict(member) for member in part.members])
        order = (part.id, PYTHON, part.session.id, part.run.rights.user, int(keeps_results), members, payload)
        registration = part.execution.registration  # its functions are there: nothing has to be imported
        patience = TOLD_WITHIN * self._threads.stall if registration else REPLY_SECONDS
        replies = await self._peers.send_all(others, "RUN", *order, registration, patience=patience)
        if None in replies:  # a shard that gets, or has lost, this registration just now
            unknown = [node for node, reply in zip(others, replies, strict=True) if reply is None]
            answers = iter(await self._peers.send_all(unknown, "RUN", *order[:-1], pack(part.session, part.plan), ""))
            replies = [next(answers) if reply is None else reply for reply in replies]
        for node, reply in zip(others, replies, strict=True):
            if isinstance(reply, BaseException):
                await self._lose(part, others, [node], reply)

    async def _lose(self, part: ExecutionPart, others: Sequence[Node], nodes: list[Node], why: BaseException) -> None:
        left = [node for node in nodes if node.id not in part.lost]
        if left:
            part.run.failed(why)
        for node in left:
            part.lose(node.id)
            self._finished[part.id][node.id].set()
            rest = [other for other in others if other.id not in part.lost]
            await self._peers.send_all(rest, "LOST", part.id, node.id)

    async def _watch_others(self, part: ExecutionPart, others: Sequence[Node]) -> None:
        """Asks the other shards whether they still run, until cancelled."""
        clock = asyncio.get_running_loop().time
        answer_times = dict.fromkeys((node.id for node in others), clock())
        idle = self._registrations.idle_of(part.execution.registration)
        counts, moved_at = list[Any](), clock()
        gone = min(GONE_AFTER, TOLD_WITHIN * self._threads.stall)
        while True:
            await asyncio.sleep(min(ALIVE_EVERY, idle / 2))
            left = [node for node in others if not self._finished[part.id][node.id].is_set()]
            replies = await self._peers.send_all(left, "ALIVE", part.id, patience=gone / 2)
            for node, reply in zip(left, replies, strict=True):
                if isinstance(reply, int) and reply:
                    answer_times[node.id] = clock()
                elif reply == 0 and not self._finished[part.id][node.id].is_set():
                    why = ResponseError(f"ERR shard {node.address} lost its part: its worker was started anew")
                    await self._lose(part, others, [node], why)
                elif clock() - answer_times[node.id] > gone:
                    why = ResponseError(f"ERR shard {node.address} left the execution: {reply}")
                    await self._lose(part, others, [node], why)
            if counts != [part.moved(), *replies] or part.run.computes():
                counts, moved_at = [part.moved(), *replies], clock()
            elif clock() - moved_at > idle:
                await self._lose(part, others, left, IDLE)
                await self._peers.send_all(left, "ABORT", part.id)

    async def _send_records(self, part: ExecutionPart, target: str, number: int, last: bool, records: list[Any]) -> int:
        """Sends a batch to a shard; returns TAKEN, FULL or UNKNOWN. Raises ResponseError when it can't be reached."""
        node = await self._cluster.node_of(target)
        if node is None:
            raise ResponseError(f"ERR shard {target} is no longer in the cluster")
        data = pack_each(part.session, records, part.run.failed) if records else b""
        return int(await self._peers.send(node, "RECORDS", part.id, number, int(last), data))

    async def _read_slot(self, part: ExecutionPart, slot: int, node: Node) -> list[Any] | None:
        """Returns the records of a slot from the shard that now has it; None while it does not have it whole."""
        plan = pack(part.session, replace(part.plan, steps=()))
        order = (part.id, PYTHON, part.session.id, part.run.rights.user, slot, plan)
        reply = await self._peers.send(node, "READ", *order)
        return None if reply is None else list(unpack(part.session, reply))

    # ---- what peers send ----

    async def _on_read(self, _sender: str, arguments: list[bytes]) -> bytes:
        _id, python, session_id, _user, slot = (text.decode("utf-8", "surrogateescape") for text in arguments[:5])
        request = current()
        assert request is not None
        if python != PYTHON:
            return resp.error(f"ERR the plan of a run of Python {python} can't be read on {PYTHON}")
        session = self._sessions.visiting(session_id, request.rights)
        plan = await self._threads.in_pool(request, unpack, session, arguments[5])
        keyspace = await self._readers.slots_of(request, plan)
        records = await keyspace.one(int(slot)) if keyspace is not None else None
        return resp.NIL if records is None else resp.bulk(pack(session, records))

    async def _on_run(self, sender: str, arguments: list[bytes]) -> bytes:
        id, python, session_id, _user, keeps_results, members = (
            text.decode("utf-8", "surrogateescape") for text in arguments[:6]
        )
        request = current()  # the module took its user from the message
        assert request is not None
        if python != PYTHON:
            return resp.error(
                f"ERR functions of Python {python} can't run here, on {PYTHON}; use one Python everywhere"
            )
        run = Run(self._threads, request.rights)
        enter(run)
        trigger = arguments[7].decode() if len(arguments) > 7 else ""
        registration = None
        if trigger:
            registration = await self._sessions.replays.settled(lambda: self._registrations.get(trigger))
            if registration is None:
                return resp.NIL
        session = self._sessions.get(session_id) or self._sessions.visiting(session_id, run.rights)
        try:
            plan = await self._threads.in_pool(run, unpack, session, arguments[6])
        except BaseException as error:  # noqa: BLE001 - of whatever a pickle of a user's objects runs
            return resp.error(describe(error))
        if registration is not None:
            plan = registration.plan(plan)
            self._registrations.prepare(registration, run)
        shards = tuple(Member(m["id"], tuple((a, b) for a, b in m["slots"])) for m in json.loads(members))
        keeps = keeps_results == "1"
        execution = self._executions.begin(session.id, run, plan, keeps_results=keeps, registration=trigger, id=id)
        part = ExecutionPart(session, execution, shards, sender, self._links)
        self._parts[id] = part
        request.hold()
        run.task = self._threads.task(self._take_part(part))
        run.task.add_done_callback(lambda _: request.release())
        return resp.OK

    async def _take_part(self, part: ExecutionPart) -> None:
        watch = self._threads.task(self._watch_initiator(part))
        results: list[Any] = []
        try:
            results = await part_results(part)
        except BaseException as error:  # noqa: BLE001 - told to the initiator
            if not isinstance(error, asyncio.CancelledError):
                part.run.failed(error)
        finally:
            watch.cancel()
            self._executions.finished(part.execution, results)
        try:
            await self._tell_finished(part)
        finally:
            self._parts.pop(part.id, None)

    async def _tell_finished(self, part: ExecutionPart) -> None:
        node = await self._cluster.node_of(part.initiator)
        if node is None:
            return
        outcome = json.dumps({"errors": part.run.errors, "dropped": part.run.dropped_errors})
        try:
            await self._peers.send(node, "FINISHED", part.id, outcome)
        except ResponseError as error:
            self._log(f"the end of execution {part.id} could not be told to its initiator: {error}", "warning")

    async def _watch_initiator(self, part: ExecutionPart) -> None:
        clock = asyncio.get_running_loop().time
        answer_time = clock()
        while clock() - answer_time < GONE_AFTER:
            await asyncio.sleep(ALIVE_EVERY)
            node = await self._cluster.node_of(part.initiator)
            if node is None:
                continue
            try:
                if await self._peers.send(node, "ALIVE", part.id) == 0:
                    break
                answer_time = clock()
            except ResponseError:
                continue
        part.run.cancel()

    async def _on_records(self, sender: str, arguments: list[bytes]) -> bytes:
        id, number, last = (text.decode() for text in arguments[:3])
        part = self._parts.get(id)
        inbox = part.inbox(int(number)) if part is not None else None
        if part is None or inbox is None or sender in part.lost:
            return resp.encode(TAKEN if part is not None else UNKNOWN)
        if inbox.is_full():
            return resp.encode(FULL)
        records: list[Any] = []
        if arguments[3]:
            try:
                records = await self._threads.in_pool(part.run, unpack, part.session, arguments[3])
            except Exception as error:  # noqa: BLE001 - of a record's class; others of the sender's wait for their end
                part.run.failed(error)
        inbox.put(sender, records, last == "1")
        return resp.encode(TAKEN)

    async def _on_finished(self, sender: str, arguments: list[bytes]) -> bytes:
        id = arguments[0].decode()
        part, event = self._parts.get(id), self._finished.get(id, {}).get(sender)
        if part is None or event is None or event.is_set():
            return resp.OK
        outcome = json.loads(arguments[1])
        room = MAX_ERRORS - len(part.run.errors)
        part.run.errors += outcome["errors"][:room]
        part.run.dropped_errors += outcome["dropped"] + len(outcome["errors"][room:])
        event.set()
        return resp.OK

    async def _on_lost(self, sender: str, arguments: list[bytes]) -> bytes:
        part = self._parts.get(arguments[0].decode())
        if part is not None and sender == part.initiator:
            part.lose(arguments[1].decode())
        return resp.OK

    async def _on_abort(self, sender: str, arguments: list[bytes]) -> bytes:
        part = self._parts.get(arguments[0].decode())
        if part is not None and sender == part.initiator:
            part.run.cancel()
        return resp.OK

    async def _on_alive(self, sender: str, arguments: list[bytes]) -> bytes:
        part = self._parts.get(arguments[0].decode())
        return resp.encode(0 if part is None else 1 + part.moved())


def _records_of(plan: RunPlan) -> list[Any]:
    """Returns the records that a run of a registration brings along to shards that have the registration."""
    return list(plan.argument) if plan.reader == GIVEN_TO_ALL else []


async def part_results(part: ExecutionPart) -> list[Any]:
    """Returns the results of a part. Raises the first of several failures at once."""
    try:
        return await part.results()
    except BaseExceptionGroup as group:
        error: BaseException = group
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        raise error from None
