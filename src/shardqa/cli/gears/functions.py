"""The functions of a cluster: registrations, executions and log lines of all masters, each as one list.

Synchronous, for the command line. A master that can't be reached is named, and left out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from redis import Redis
from redis.exceptions import RedisError, ResponseError

from shardqa import topology

COUNTS = ("triggered", "succeeded", "failed", "aborted", "queue")
NAMES = {"numTriggered": "triggered", "numSuccess": "succeeded", "numFailures": "failed", "numAborted": "aborted"}


@dataclass(slots=True)
class RegisteredFunction:
    """One registration, summed over the shards that have it, whatever id each of them gave it."""

    id: str  # on the first shard
    name: str  # its trigger, its keys, or the command it hooks
    description: str | None
    session: str
    reader: str
    mode: str
    status: str  # OK, PAUSED, or inactive on some shard
    shards: list[str] = field(default_factory=list)
    ids: list[str] = field(default_factory=list)  # of each of the shards
    counts: Counter[str] = field(default_factory=Counter)  # COUNTS
    # us -> runs that took so long at most, and more than the one before
    histogram: Counter[int] = field(default_factory=Counter)
    last_error: str | None = None

    def is_called(self, word: str) -> bool:
        return word in (*self.ids, self.name, self.session, self.description)

    def is_same(self, other: RegisteredFunction) -> bool:
        """Returns whether both are the same registration on different shards; no shard has it twice."""
        own, its = ((one.session, one.reader, one.name, one.mode, one.description) for one in (self, other))
        return own == its and not set(self.shards) & set(other.shards)

    def add(self, other: RegisteredFunction) -> None:
        self.shards += other.shards
        self.ids += other.ids
        self.counts.update(other.counts)
        self.histogram.update(other.histogram)
        self.status = other.status if self.status == "OK" else self.status
        self.last_error = other.last_error or self.last_error

    def percentile(self, fraction: float) -> float | None:
        """Returns the milliseconds in which this fraction of runs ended (a quarter too high at most); None for none."""
        rank, count = int(fraction * self.histogram.total()), 0
        for top in sorted(self.histogram):
            count += self.histogram[top]
            if count > rank:
                return top / 1000
        return None


@dataclass(slots=True)
class ExecutionOnShards:
    id: str
    session: str
    status: str  # running, done, aborted
    registered: bool  # begun by a registration
    shards: list[str] = field(default_factory=list)
    records: int = 0
    errors: int = 0
    milliseconds: int = 0


@dataclass(frozen=True, slots=True)
class LogLine:
    number: int  # ascending on a shard; microseconds since 1970
    shard: str
    level: str
    whose: str
    text: str


@dataclass(slots=True)
class MasterReplies:
    """The reply of each master, or the reason why there is none."""

    replies: dict[str, Any]  # by address
    failed: dict[str, str]  # address -> why


class Masters:
    def __init__(self, connect: Callable[[str, int], Redis], seed: tuple[str, int]) -> None:
        """Asks the seed for the masters. Raises redis.RedisError when it can't tell them."""
        self._connect = connect
        self.addresses = _masters(connect, seed)

    def on(self, address: tuple[str, int], *words: str | bytes) -> Any:
        """Runs a command on one master. Raises redis.RedisError."""
        with self._connect(*address) as client:
            return client.execute_command(*words)

    def everywhere(self, *words: str) -> MasterReplies:
        """Runs a command on all masters at once: one that hangs keeps no other waiting."""
        masters = MasterReplies({}, {})
        with ThreadPoolExecutor(len(self.addresses) or 1) as threads:
            for address, reply in zip(
                self.addresses, threads.map(partial(self._try, words), self.addresses), strict=True
            ):
                name = _name(address)
                if isinstance(reply, RedisError):
                    masters.failed[name] = str(reply)
                else:
                    masters.replies[name] = reply
        return masters

    def _try(self, words: Sequence[str], address: tuple[str, int]) -> Any:
        try:
            return self.on(address, *words)
        except RedisError as error:
            return error

    def address(self, name: str) -> tuple[str, int]:
        return next(address for address in self.addresses if _name(address) == name)


def _name(address: tuple[str, int]) -> str:
    return f"{address[0]}:{address[1]}"


def _masters(connect: Callable[[str, int], Redis], seed: tuple[str, int]) -> list[tuple[str, int]]:
    with connect(*seed) as client:
        try:
            nodes = topology.read(client)
        except ResponseError as error:
            if "cluster support disabled" not in str(error):
                raise
            return [seed]
    return [(node.host, node.port) for node in nodes if node.role == "master" and node.slots]


def registrations(masters: Masters) -> tuple[list[RegisteredFunction], dict[str, str]]:
    """Returns the registrations in the order of their names, and the failures by shard."""
    every = masters.everywhere("RG.DUMPREGISTRATIONS", "WITH", "STATISTICS")
    functions: list[RegisteredFunction] = []
    for shard, reply in every.replies.items():
        for function in (_parsed(shard, named(entry)) for entry in reply):
            same = [one for one in functions if one.is_same(function)]
            first = next((one for one in same if function.id in one.ids), same[0] if same else None)
            if first is not None:
                first.add(function)
            else:
                functions.append(function)
    return sorted(functions, key=lambda one: (one.session, one.name, one.id)), every.failed


def _parsed(shard: str, entry: Mapping[str, Any]) -> RegisteredFunction:
    """Returns the registration in one shard's reply."""
    data, statistics, id = named(entry["RegistrationData"]), named(entry.get("Statistics", [])), str(entry["id"])
    counts = Counter({ours: int(data[theirs]) for theirs, ours in NAMES.items()})
    return RegisteredFunction(
        id=id,
        name=_name_of(named(data["args"])),
        description=entry["desc"],
        session=str(entry["PD"]).partition("'sessionName':'")[2].partition("', 'depsList'")[0],
        reader=str(entry["reader"]),
        mode=str(data["mode"]),
        status=str(data.get("status", "OK")),
        shards=[shard],
        ids=[id],
        counts=counts + Counter(queue=statistics.get("queue", 0)),
        histogram=Counter(dict(statistics.get("runHistogramUS", ()))),
        last_error=data["lastError"],
    )


def _name_of(arguments: Mapping[str, Any]) -> str:
    if "hook" in arguments:
        return f"{arguments['hook']} {arguments['keyprefix']}"
    hooks = arguments.get("hookCommands")
    name = str(arguments.get("trigger") or arguments.get("regex") or arguments.get("stream") or "")
    return f"{' '.join(hooks)} {name}" if hooks else name


def executions(masters: Masters) -> tuple[list[ExecutionOnShards], dict[str, str]]:
    """Returns the executions that run or are kept, and the failures by shard."""
    every = masters.everywhere("RG.DUMPEXECUTIONS", "WITH", "STATISTICS")
    by_id: dict[str, ExecutionOnShards] = {}
    for shard, reply in every.replies.items():
        for entry in map(named, reply):
            id = str(entry["executionId"])
            execution = by_id.setdefault(
                id, ExecutionOnShards(id, str(entry.get("session", "")), "done", bool(entry["registered"]))
            )
            execution.shards.append(shard)
            execution.status = "running" if "running" in (execution.status, entry["status"]) else _status(entry)
            execution.records += int(entry.get("records", 0))
            execution.errors = max(execution.errors, int(entry.get("errorCount", 0)))
            execution.milliseconds = max(execution.milliseconds, int(entry.get("elapsedMS", 0)))
    return list(by_id.values()), every.failed


def log_lines(masters: Masters, after: Mapping[str, int]) -> tuple[list[LogLine], dict[str, str]]:
    """Returns the lines, oldest first, after the number that `after` has for their shard, and the failures by shard."""
    every = masters.everywhere("RG.PYLOGS")
    lines = [
        LogLine(int(number), shard, level, whose, line)
        for shard, reply in every.replies.items()
        for number, level, whose, line in text(reply)
        if int(number) > after.get(shard, -1)
    ]
    return sorted(lines, key=lambda line: line.number), every.failed


def parts(masters: Masters, initiator: tuple[str, int], id: str) -> Iterator[dict[str, Any]]:
    """Yields the part of each shard in an execution. Raises redis.RedisError."""
    for entry in masters.on(initiator, "RG.GETEXECUTION", id, "WITH", "STATISTICS"):
        part = named(entry)
        plan = named(part["execution_plan"])
        yield {"shard": str(part["shard_id"]), **plan, "status": _status(plan)}


def _status(entry: Mapping[str, Any]) -> str:
    """Returns the status of an execution: RedisGears calls an aborted one done."""
    return "aborted" if entry.get("aborted") else str(entry["status"])


def named(flat: Sequence[Any]) -> dict[str, Any]:
    """Returns a list of names and values as a dictionary, with str for bytes."""
    words = text(flat)
    return dict(zip(words[::2], words[1::2], strict=True))


def text(reply: Any) -> Any:
    if isinstance(reply, bytes):
        return reply.decode("utf-8", "replace")
    return [text(one) for one in reply] if isinstance(reply, list) else reply
