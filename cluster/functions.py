"""Functions of a cluster as all its masters tell of them: registrations, executions and log lines, each as one list.

Synchronous, for the command line. What can't be reached is named, and left out.
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
    """One registration, summed over the shards that have it."""

    id: str
    name: str  # its trigger, its keys, or the command it hooks
    description: str | None
    session: str
    reader: str
    mode: str
    status: str  # OK, PAUSED, or inactive on some shard
    shards: list[str] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)  # COUNTS
    histogram: Counter[int] = field(
        default_factory=Counter
    )  # us -> runs that took so long at most, and more than the last
    last_error: str | None = None

    def is_called(self, word: str) -> bool:
        return word in (self.id, self.name, self.session, self.description)

    def percentile(self, fraction: float) -> float | None:
        """Milliseconds; at most a quarter too high. None before the first run."""
        wanted, seen = int(fraction * self.histogram.total()), 0
        for top in sorted(self.histogram):
            seen += self.histogram[top]
            if seen > wanted:
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
    """What came of asking every master."""

    replies: dict[str, Any]  # by address
    failed: dict[str, str]  # address -> why


class Masters:
    def __init__(self, connect: Callable[[str, int], Redis], seed: tuple[str, int]) -> None:
        """Raises redis.RedisError when the seed can't tell who is there."""
        self._connect = connect
        self.addresses = _masters(connect, seed)

    def on(self, address: tuple[str, int], *words: str | bytes) -> Any:
        """Raises redis.RedisError."""
        with self._connect(*address) as client:
            return client.execute_command(*words)

    def everywhere(self, *words: str) -> MasterReplies:
        """At once: one that hangs keeps nobody else waiting."""
        asked = MasterReplies({}, {})
        with ThreadPoolExecutor(len(self.addresses) or 1) as threads:
            for address, reply in zip(
                self.addresses, threads.map(partial(self._try, words), self.addresses), strict=True
            ):
                name = _name(address)
                if isinstance(reply, RedisError):
                    asked.failed[name] = str(reply)
                else:
                    asked.replies[name] = reply
        return asked

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
    """(all of them in the order of their names, what failed)."""
    asked = masters.everywhere("RG.DUMPREGISTRATIONS", "WITH", "STATISTICS")
    found: dict[str, RegisteredFunction] = {}
    for shard, reply in asked.replies.items():
        for entry in reply:
            _add(found, shard, named(entry))
    return sorted(found.values(), key=lambda one: (one.session, one.name, one.id)), asked.failed


def _add(found: dict[str, RegisteredFunction], shard: str, entry: Mapping[str, Any]) -> None:
    data, told, id = named(entry["RegistrationData"]), named(entry.get("Statistics", [])), str(entry["id"])
    arguments = named(data["args"])
    one = found.get(id)
    if one is None:
        session = str(entry["PD"]).partition("'sessionName':'")[2].partition("', 'depsList'")[0]
        status = str(data.get("status", "OK"))
        one = RegisteredFunction(
            id, _name_of(arguments), entry["desc"], session, str(entry["reader"]), str(data["mode"]), status
        )
        found[id] = one
    one.shards.append(shard)
    one.counts.update({ours: data[theirs] for theirs, ours in NAMES.items()} | {"queue": told.get("queue", 0)})
    one.histogram.update(dict(told.get("runHistogramUS", ())))
    one.last_error = data["lastError"] or one.last_error


def _name_of(arguments: Mapping[str, Any]) -> str:
    if "hook" in arguments:
        return f"{arguments['hook']} {arguments['keyprefix']}"
    hooks = arguments.get("hookCommands")
    name = str(arguments.get("trigger") or arguments.get("regex") or arguments.get("stream") or "")
    return f"{' '.join(hooks)} {name}" if hooks else name


def executions(masters: Masters) -> tuple[list[ExecutionOnShards], dict[str, str]]:
    """(those that run and those that are kept, what failed)."""
    asked = masters.everywhere("RG.DUMPEXECUTIONS", "WITH", "STATISTICS")
    found: dict[str, ExecutionOnShards] = {}
    for shard, reply in asked.replies.items():
        for entry in map(named, reply):
            id = str(entry["executionId"])
            one = found.setdefault(
                id, ExecutionOnShards(id, str(entry.get("session", "")), "done", bool(entry["registered"]))
            )
            one.shards.append(shard)
            one.status = "running" if "running" in (one.status, entry["status"]) else str(entry["status"])
            one.records += int(entry.get("records", 0))
            one.errors = max(one.errors, int(entry.get("errorCount", 0)))
            one.milliseconds = max(one.milliseconds, int(entry.get("elapsedMS", 0)))
    return list(found.values()), asked.failed


def log_lines(masters: Masters, after: Mapping[str, int]) -> tuple[list[LogLine], dict[str, str]]:
    """(those behind the numbers that `after` has for each shard, in the order of time; what failed)."""
    asked = masters.everywhere("RG.PYLOGS")
    lines = [
        LogLine(int(number), shard, level, whose, line)
        for shard, reply in asked.replies.items()
        for number, level, whose, line in text(reply)
        if int(number) > after.get(shard, -1)
    ]
    return sorted(lines, key=lambda line: line.number), asked.failed


def parts(masters: Masters, initiator: tuple[str, int], id: str) -> Iterator[dict[str, Any]]:
    """What each shard tells of its part of an execution. Raises redis.RedisError."""
    for entry in masters.on(initiator, "RG.GETEXECUTION", id, "WITH", "STATISTICS"):
        told = named(entry)
        yield {"shard": str(told["shard_id"]), **named(told["execution_plan"])}


def named(flat: Sequence[Any]) -> dict[str, Any]:
    """name, value, … as a dictionary, with str for bytes."""
    words = text(flat)
    return dict(zip(words[::2], words[1::2], strict=True))


def text(reply: Any) -> Any:
    if isinstance(reply, bytes):
        return reply.decode("utf-8", "replace")
    return [text(one) for one in reply] if isinstance(reply, list) else reply
