"""Harms that a soak does to its cluster, one after another, each by name.

A harm is done, then mended where it needs mending (a killed node is started again). What it says of a time is from the
moment of the harm. Synchronous: to be called in a thread.
"""

import signal
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from random import Random
from time import monotonic

from redis.exceptions import ResponseError

from shardqa.topology import Node
from tests.faults.subject import Subject

SLOTS = 150  # moved at a time
HANG_SECONDS = 2.5  # less than the node timeout


@dataclass(slots=True)
class Harmed:
    name: str
    port: int  # of the node that was harmed; 0: several, or none in particular
    at: float
    taken_over: float | None = None  # when a replica was master
    mend: Callable[[], None] = field(default=lambda: None)
    watch: Callable[[], None] = field(default=lambda: None)  # waits for what it tells


Harm = Callable[[Subject, Random], Harmed]


def _master(subject: Subject, chance: Random) -> Node:
    return chance.choice(subject.masters())


def _pair(subject: Subject, chance: Random) -> tuple[Node, Node]:
    """Gives a master and its replica."""
    master = _master(subject, chance)
    replica = subject.replica_of(master)
    assert replica is not None
    return master, replica


def kill_worker(subject: Subject, chance: Random) -> Harmed:
    port = _master(subject, chance).port
    subject.signal_worker(port, signal.SIGKILL)
    return Harmed("worker killed", port, monotonic())


def hang_worker(subject: Subject, chance: Random) -> Harmed:
    """The module kills and replaces it by itself."""
    port = _master(subject, chance).port
    subject.signal_worker(port, signal.SIGSTOP)
    return Harmed("worker hung", port, monotonic())


def _taken_over(harmed: Harmed, subject: Subject, replica: Node) -> Callable[[], None]:
    def watch() -> None:
        subject.wait_until_master(replica.port)
        harmed.taken_over = monotonic()

    return watch


def kill_master(subject: Subject, chance: Random) -> Harmed:
    """It comes back once its replica has taken over."""
    master, replica = _pair(subject, chance)
    subject.kill(master.port)
    harmed = Harmed("master killed", master.port, monotonic(), mend=subject.restart)
    harmed.watch = _taken_over(harmed, subject, replica)
    return harmed


def restart_master(subject: Subject, chance: Random) -> Harmed:
    """Ends a master by kill -9; it is back before its replica takes over."""
    port = _master(subject, chance).port
    subject.kill(port)
    harmed = Harmed("master killed and restarted at once", port, monotonic())
    subject.restart()
    return harmed


def kill_replica(subject: Subject, chance: Random) -> Harmed:
    _, replica = _pair(subject, chance)
    subject.kill(replica.port)
    return Harmed("replica killed", replica.port, monotonic(), mend=subject.restart)


def hang_master(subject: Subject, chance: Random) -> Harmed:
    port = _master(subject, chance).port
    subject.stop_node(port)
    time.sleep(HANG_SECONDS)
    subject.continue_node(port)
    return Harmed(f"master hung for {HANG_SECONDS:g} s", port, monotonic())


def hang_master_long(subject: Subject, chance: Random) -> Harmed:
    master, replica = _pair(subject, chance)
    subject.stop_node(master.port)
    name, mend = "master hung until its replica took over", lambda: subject.continue_node(master.port)
    harmed = Harmed(name, master.port, monotonic(), mend=mend)
    harmed.watch = _taken_over(harmed, subject, replica)
    return harmed


def promote(subject: Subject, chance: Random) -> Harmed:
    """CLUSTER FAILOVER: both agree on it."""
    master, replica = _pair(subject, chance)
    with subject.client(replica.port) as client:
        client.execute_command("CLUSTER", "FAILOVER")
    harmed = Harmed("replica promoted", master.port, monotonic())
    harmed.watch = _taken_over(harmed, subject, replica)
    return harmed


def reshard(subject: Subject, chance: Random) -> Harmed:
    """Slots move from one master to another."""
    giver, taker = chance.sample(subject.masters(), 2)
    words = ["--cluster", "reshard", f"127.0.0.1:{giver.port}", "--cluster-from", giver.id, "--cluster-to", taker.id]
    words += ["--cluster-slots", str(min(SLOTS, giver.slot_count() // 4)), "--cluster-yes"]
    begin = monotonic()
    done = subprocess.run(["redis-cli", *words], capture_output=True, text=True, check=False)
    if done.returncode:
        fixed = ["redis-cli", "--cluster", "fix", f"127.0.0.1:{giver.port}", "--cluster-yes"]
        subprocess.run(fixed, capture_output=True, check=False)
        return Harmed("slots moved in part, then 'redis-cli --cluster fix'", giver.port, begin)
    return Harmed("slots moved", giver.port, begin)


def rewrite(subject: Subject, chance: Random) -> Harmed:
    """Every node writes its append only file anew."""
    begin = monotonic()
    for port in subject.ports:
        with subject.client(port) as client, suppress(ResponseError):  # one that became a replica is at it
            client.bgrewriteaof()
    return Harmed("append only files rewritten", 0, begin)


HARMS: tuple[Harm, ...] = (
    kill_worker,
    hang_worker,
    kill_master,
    restart_master,
    kill_replica,
    hang_master,
    hang_master_long,
    promote,
    reshard,
    rewrite,
)
