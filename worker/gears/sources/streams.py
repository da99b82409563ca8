"""Streams that registrations read: batches in order, each message until its execution is done.

The place where a registration stands in a stream is a consumer group of that stream, so Redis itself keeps it: it is
saved and replicated with the stream, moves with its slot, and after a restart or a failover reading goes on with the
messages whose execution was not done. The group is named after session and place in the script, so an upgraded session
goes on where the old one stood. Loop's thread only; one coroutine per registration and stream that has work.
"""

import asyncio
import time
from contextlib import suppress
from dataclasses import dataclass, field
from math import inf
from typing import Any

from redis import ResponseError

from shardqa.worker.calls import Command, first
from shardqa.worker.gears.pipeline.readers import GLOB, message
from shardqa.worker.gears.pipeline.run import Run, enter
from shardqa.worker.gears.registrations.registrations import Registration, Registrations
from shardqa.worker.gears.sources.registration_runs import RegistrationRuns
from shardqa.worker.io import Io
from shardqa.worker.nodes import Cluster

AHEAD = 500  # messages read at once
CONSUMER = "worker"  # the one consumer of each group
PAUSE_WORD = "PAUSE"  # how the text of a flat_error begins that pauses its registration
RETRY = 1.0  # seconds before a stream is looked at again whose reading failed (its slot moves, memory is short)


@dataclass(slots=True, eq=False)
class Message:
    id: bytes
    fields: list[bytes]
    read_at: float  # of time.monotonic(); -inf: it was there before


@dataclass(slots=True, eq=False)
class Follower:
    """A registration that reads one stream."""

    registration: Registration
    key: str
    messages: list[Message] = field(default_factory=list)  # read, not executed yet
    more: bool = True  # there may be messages that were not read yet
    begun: bool = False  # the group is there and what an earlier life left is read
    at_once: bool = False  # what is there when it has read all waits for no whole batch
    done: tuple[int, int] = (0, 0)  # id up to which all is executed
    wake: asyncio.Event = field(default_factory=asyncio.Event)
    task: asyncio.Task[None] | None = None
    run: Run | None = None  # of the batch that it executes, until that is acknowledged
    leaving: asyncio.Task[None] | None = None  # drops its group once it ends
    writers: list[asyncio.Future[None]] = field(default_factory=list)  # they wait until it rests

    def rest(self) -> None:
        """Lets waiting writers go on: messages are executed, have failed, or wait for more."""
        while self.writers:
            writer = self.writers.pop()
            if not writer.done():
                writer.set_result(None)


class Streams:
    def __init__(self, io: Io, registrations: Registrations, cluster: Cluster, runs: RegistrationRuns) -> None:
        self._calls = io.calls
        self._threads = io.threads
        self._registrations = registrations
        self._cluster = cluster
        self._runs = runs
        self._followers: dict[tuple[int, str], Follower] = {}  # by identity of the registration, and key
        self._started = False  # the keyspace is loaded
        registrations.count_queue(self._waiting)
        registrations.listen(self.begin, self.end)

    def _waiting(self, registration: Registration) -> int:
        """Returns how many messages were read and wait for an execution."""
        followers = self._of(registration)
        return sum(
            max(len(f.messages) - registration.stream.batch * (f.run is not None), 0) + (f.leaving is not None)
            for f in followers
        )

    def notify(self, registration: Registration, key: str, at_once: bool = False) -> None:
        """Notes that a stream of this registration has messages, or may have."""
        follower = self._followers.get((id(registration), key))
        if follower is None:
            follower = self._followers[id(registration), key] = Follower(registration, key)
        follower.more = True
        follower.at_once |= at_once
        follower.wake.set()
        if follower.task is None:
            follower.task = self._threads.task(self._follow(follower))

    async def settle(self, registration: Registration, key: str) -> None:
        """Returns when a stream's messages are executed, or wait for more, for another try or for a pause's end."""
        self.notify(registration, key)
        rests = self._threads.loop.create_future()
        self._followers[id(registration), key].writers.append(rests)
        await rests

    def begin(self, registration: Registration) -> None:
        """Looks for streams of a registration that is new, or whose slots this node is now master of."""
        if registration.reader == "StreamReader" and self._started and self._cluster.role == "master":
            self._threads.task(self._find(registration))

    def begin_all(self) -> None:
        """Begins all registrations: the keyspace was loaded or replaced, or this node promoted."""
        self._started = True
        for registration in self._registrations:
            self.begin(registration)

    def end(self, registration: Registration) -> None:
        """Ends the followers of a registration that goes or pauses; what a batch has begun is finished first."""
        for follower in self._of(registration):
            if follower.run is None or not follower.run.records:
                self._drop(follower)

    def _of(self, registration: Registration) -> list[Follower]:
        return [f for f in self._followers.values() if f.registration is registration]

    def forget(self, registration: Registration) -> None:
        """Has the groups of a registration dropped that is about to be removed."""
        for follower in self._of(registration):
            follower.leaving = self._threads.task(self._leave(follower))

    async def _leave(self, follower: Follower) -> None:
        if follower.task is not None:
            await asyncio.wait([follower.task])
        registration = follower.registration
        await self._calls.run_async(
            registration.rights, [("XGROUP", "DESTROY", follower.key, registration.stream_group)]
        )
        follower.leaving = None
        self._drop(follower)

    def pause(self, registration: Registration, is_paused: bool) -> None:
        registration.status = "PAUSED" if is_paused else "OK"
        (self.end if is_paused else self.begin)(registration)

    def _drop(self, follower: Follower) -> None:
        if follower.leaving is None:
            self._followers.pop((id(follower.registration), follower.key), None)
        if follower.run is not None:
            follower.run.stopped = True  # it counts as aborted
        if follower.task is not None:
            follower.task.cancel()

    async def _find(self, registration: Registration) -> None:
        pattern, cursor = GLOB.sub(r"\\\g<0>", registration.prefix[:-1]) + "*", b"0"  # as events are matched
        if not registration.prefix.endswith("*"):
            self.notify(registration, registration.prefix, at_once=True)
            return
        while True:
            command = ("SCAN", cursor, "MATCH", pattern, "COUNT", AHEAD, "TYPE", "stream")
            try:
                cursor, keys = await self._call(registration, command)
            except ResponseError as error:
                registration.statistics.last_error = str(error)
                return
            for key in keys:
                self.notify(registration, key.decode("utf-8", "surrogateescape"), at_once=True)
            if cursor == b"0":
                return

    # ---- one follower ----

    def _is_on(self, follower: Follower) -> bool:
        registration = follower.registration
        return self._registrations.has(registration) and registration.status == "OK" and self._cluster.role == "master"

    async def _follow(self, follower: Follower) -> None:
        """Follows a stream until there is nothing to do; to wait for a batch or a duration is something."""
        try:
            while self._is_on(follower):
                try:
                    if not await self._step(follower):
                        break
                except ResponseError as error:
                    if not await self._may_go_on(follower, error):
                        break
        finally:
            follower.task = None
            follower.rest()
            if not self._is_on(follower) and follower.leaving is None:
                self._followers.pop((id(follower.registration), follower.key), None)

    async def _step(self, follower: Follower) -> bool:
        """Reads or executes once; False where there is nothing to do until the next `notify`."""
        options = follower.registration.stream
        if not follower.begun:
            await self._begin(follower)
        if len(follower.messages) < options.batch and follower.more:
            await self._read(follower, b">")
            return True
        if follower.at_once and not follower.more:
            follower.at_once = False
            for one in follower.messages:
                one.read_at = -inf
        if not follower.messages:
            return False
        since = follower.messages[0].read_at
        due = since + options.duration / 1000 if options.duration or since < 0 else None
        if len(follower.messages) >= options.batch or (due is not None and time.monotonic() >= due):
            try:
                await self._execute(follower, follower.messages[: options.batch])
            finally:
                follower.run = None
            return True
        if due is None:
            return False
        follower.rest()
        follower.wake.clear()
        with suppress(TimeoutError):
            await asyncio.wait_for(follower.wake.wait(), due - time.monotonic())
        return True

    async def _begin(self, follower: Follower) -> None:
        """Makes the group. Raises ResponseError where there is no stream."""
        group = follower.registration.stream_group
        others = [f for f in self._followers.values() if f is not follower and f.key == follower.key]
        for former in others:  # of a session that was replaced: what it executes is done first
            end = former.leaving or former.task
            if end is not None and former.registration.stream_group == group:
                await asyncio.wait([end])
        (reply,) = await self._calls.run_async(
            follower.registration.rights, [("XGROUP", "CREATE", follower.key, group, "0")]
        )
        if isinstance(reply, Exception) and not str(reply).startswith("BUSYGROUP"):
            raise reply
        follower.messages.clear()
        last = b"0"
        while True:  # what was read and not done before
            before = len(follower.messages)
            last = await self._read(follower, last)
            if len(follower.messages) == before:
                break
        follower.begun, follower.more = True, True

    async def _read(self, follower: Follower, start: bytes) -> bytes:
        """Adds up to AHEAD messages to those held; returns the last id read, or `start`."""
        registration = follower.registration
        command = ("XREADGROUP", "GROUP", registration.stream_group, CONSUMER, "COUNT", AHEAD)
        follower.more = False
        reply = await self._call(registration, (*command, "STREAMS", follower.key, start))
        read: list[tuple[bytes, list[bytes] | None]] = reply[0][1] if reply else []
        follower.more = follower.more or len(read) >= AHEAD  # more may have been told of meanwhile
        now = time.monotonic()
        follower.messages += [Message(id, fields, now) for id, fields in read if fields is not None]
        missing = [id for id, fields in read if fields is None]  # deleted while they waited
        if missing:
            await self._call(registration, ("XACK", follower.key, registration.stream_group, *missing))
        return read[-1][0] if read else start

    async def _execute(self, follower: Follower, batch: list[Message]) -> None:
        registration = follower.registration
        run = follower.run = Run(self._threads, registration.rights)
        enter(run)
        records = [message(follower.key.encode("utf-8", "surrogateescape"), m.id, m.fields) for m in batch]
        try:
            run.task = self._threads.task(self._runs.run(run, registration, records, listed=True))
            has_failed = await run.task is None
        except asyncio.CancelledError:
            if not run.cancelled:  # it is the follower that ends, and nothing has begun
                run.cancel()
                raise
            has_failed = True
        except BaseException as error:  # noqa: BLE001 - of a function: its policy says what follows
            run.failed(error)
            has_failed = True
        registration.statistics.lagged(max(0.0, time.time() * 1000 - _id(batch[-1].id)[0]))
        if has_failed and not await self._passes_over(follower, run):
            return
        del follower.messages[: len(batch)]
        follower.done = _id(batch[-1].id)
        await self._finish(follower, batch)

    async def _passes_over(self, follower: Follower, run: Run) -> bool:
        """Returns whether a batch that failed counts as done."""
        registration = follower.registration
        if run.errors and run.errors[0].startswith(PAUSE_WORD):
            registration.status = "PAUSED"
            return False
        match registration.stream.policy:
            case "retry":
                follower.rest()
                await asyncio.sleep(registration.stream.retry)
                return False
            case "abort":
                registration.status = "ABORTED"
                return False
        return True

    async def _finish(self, follower: Follower, batch: list[Message]) -> None:
        registration = follower.registration
        commands: list[Command] = [("XACK", follower.key, registration.stream_group, *(m.id for m in batch))]
        if registration.stream.trim:
            group = registration.stream_group  # of it others wait for this one
            others = [f for f in self._followers.values() if f.key == follower.key]
            done = [f.done for f in others if f is follower or f.registration.stream_group != group]
            milliseconds, number = min(done)
            commands.append(("XTRIM", follower.key, "MINID", f"{milliseconds}-{number + 1}"))
        for reply in await self._calls.run_async(registration.rights, commands):
            if isinstance(reply, Exception):
                raise reply

    async def _may_go_on(self, follower: Follower, error: ResponseError) -> bool:
        """Returns whether to read on after a fault: at once where the group is gone, later where the fault may pass."""
        text = str(error)
        if text.startswith("NOGROUP"):  # the stream was deleted and made again
            follower.begun = False
            return bool(await self._call(follower.registration, ("EXISTS", follower.key)))
        if "requires the key to exist" in text or text.startswith(("WRONGTYPE", "READONLY", "NOPERM")):
            follower.begun = follower.at_once = False
            if not text.startswith("ERR"):
                follower.registration.statistics.last_error = text
            return False
        follower.registration.statistics.last_error = text
        follower.begun = False
        await asyncio.sleep(RETRY)
        return self._cluster.owns(follower.key)

    async def _call(self, registration: Registration, command: Command) -> Any:
        """Runs a command with the registration's rights. Raises ResponseError."""
        return first(await self._calls.run_async(registration.rights, [command]))


def _id(id: bytes) -> tuple[int, int]:
    milliseconds, _, number = id.partition(b"-")
    return int(milliseconds), int(number)
