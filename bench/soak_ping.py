"""PING of a small cluster under the soak's askers and writers, one way of scheduling after another, in rounds of a run.

`soak_ping.py [--rounds N] [--seconds S] [VARIANT…]`. Three shards with a replica each; nothing is killed. What a
variant changes is changed from outside, in running processes, so that all have the same cluster, documents and
neighbours. It has to run as root, on Linux 6.12 or newer.
"""

import argparse
import asyncio
import ctypes
import os
import platform
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, fields
from pathlib import Path
from random import Random

import numpy as np

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from shardqa import machine  # noqa: E402
from shardqa.cluster import node  # noqa: E402
from shardqa.cluster.local import LocalCluster  # noqa: E402
from shardqa.config import Settings  # noqa: E402
from tests.faults import documents  # noqa: E402
from tests.faults.pinger import WAIT  # noqa: E402
from tests.faults.soak import pings  # noqa: E402
from tests.faults.subject import EXTRA  # noqa: E402
from tests.faults.workload import Asker, Record, Stop, Writer, until  # noqa: E402
from tests.nodes import prepare, running_cluster  # noqa: E402

SCHED_SETATTR = {"x86_64": 314, "aarch64": 274}
BURN = """
import os, sys, time
share, begin = float(sys.argv[1]), 0.0
os.nice(int(sys.argv[2]))
while True:
    begin = time.process_time()
    while time.process_time() - begin < 0.004 * share: pass
    time.sleep(0.004 * (1 - share))
"""


@dataclass(frozen=True, slots=True)
class Variant:
    name: str
    nice: int = 5  # of the workers
    batch: bool = False  # … SCHED_BATCH
    slice_us: int = 0  # turns of Redis' main threads; 0: the kernel's
    fsync: str = "always"
    load: bool = True
    burners: bool = False  # processes that use as much as the variant before did


VARIANTS = {
    variant.name: variant
    for variant in (
        Variant("idle", load=False),
        Variant("before"),
        Variant("slice", slice_us=100),
        Variant("slice0", nice=0, slice_us=100),
        Variant("slice10", nice=10, slice_us=100),
        Variant("slice19", nice=19, slice_us=100),
        Variant("slice-batch", batch=True, slice_us=100),
        Variant("everysec", fsync="everysec"),
        Variant("everysec-slice", fsync="everysec", slice_us=100),
        Variant("burners", load=False, burners=True),
    )
}


@dataclass(slots=True)
class Nodes:
    ports: list[int]
    redis: list[int]  # pids
    workers: list[int]


@dataclass(slots=True)
class Result:
    pings: list[float] = field(default_factory=list)  # ms
    rounds: list[float] = field(default_factory=list)  # p99 of each
    seconds: float = 0.0
    asked: int = 0
    written: int = 0
    worker_cpu: float = 0.0  # seconds, as the next ones
    load_cpu: float = 0.0
    waited: float = 0.0  # Redis' main threads, for a processor

    def add(self, other: "Result") -> None:
        for one in fields(Result):
            setattr(self, one.name, getattr(self, one.name) + getattr(other, one.name))


def schedule(pid: int, nice: int = 0, batch: bool = False, slice_us: int = 0) -> None:
    """For all threads that the process has."""
    libc = ctypes.CDLL(None, use_errno=True)
    attributes = struct.pack("<IIQiIQQQ", 48, 3 if batch else 0, 0, nice, 0, slice_us * 1000, 0, 0)
    for thread in os.listdir(f"/proc/{pid}/task"):
        if libc.syscall(SCHED_SETATTR[platform.machine()], int(thread), attributes, 0) != 0:
            raise SystemExit(f"sched_setattr: {os.strerror(ctypes.get_errno())}; run this as root")


def used(pids: list[int]) -> float:
    words = [Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split() for pid in pids]
    return sum(int(line[11]) + int(line[12]) for line in words) / os.sysconf("SC_CLK_TCK")


def waited(pids: list[int]) -> float:
    """Seconds that the main threads could have run and did not."""
    return sum(int(Path(f"/proc/{pid}/task/{pid}/schedstat").read_text().split()[1]) for pid in pids) / 1e9


def apply(variant: Variant, nodes: Nodes) -> None:
    for pid in nodes.workers:
        schedule(pid, variant.nice, variant.batch)
    for pid in nodes.redis:
        schedule(pid, slice_us=variant.slice_us)
    for port in nodes.ports:
        with node.connected(port) as client:
            client.config_set("appendfsync", variant.fsync)


async def load(settings: Settings, seconds: float, seed: int) -> Record:
    record, stop = Record(), Stop()
    askers = [Asker(record, settings, Random(seed + n)) for n in range(4)]
    writers = [Writer(record, settings, documents.NAMES[n::2], Random(seed + 9 + n), 1, 0.1) for n in range(2)]
    async with asyncio.TaskGroup() as group:
        for asker in askers:
            group.create_task(asker.run(stop))
        for writer in writers:
            group.create_task(writer.run(stop))
        group.create_task(until(stop, seconds))
    return record


@contextmanager
def pinged(ports: list[int], file: Path) -> Iterator[None]:
    command = [sys.executable, "-m", "tests.faults.pinger", *map(str, ports)]
    with file.open("wb") as out, subprocess.Popen(command, stdin=subprocess.PIPE, stdout=out, cwd=ROOT) as process:
        try:
            yield
        finally:
            process.communicate(timeout=30 + WAIT)


@contextmanager
def burning(shares: list[tuple[float, int]]) -> Iterator[None]:
    """Processes by share of a processor and niceness."""
    commands = ([sys.executable, "-c", BURN, f"{min(share, 1.0)}", f"{nice}"] for share, nice in shares)
    processes = [subprocess.Popen(command) for command in commands]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


def measure(cluster: LocalCluster, nodes: Nodes, variant: Variant, seconds: float, seed: int, last: Result) -> Result:
    apply(variant, nodes)
    settings = Settings(redis=cluster.seed(), corpus="soak", timeout=20)
    shares: list[tuple[float, int]] = []
    if variant.burners and last.seconds:
        each = last.worker_cpu / last.seconds / len(nodes.workers)
        shares = [*((each, variant.nice) for _ in nodes.workers), (last.load_cpu / last.seconds, 0)]
    found, begin, own = Result(), time.monotonic(), time.process_time()
    before = used(nodes.workers), waited(nodes.redis)
    with tempfile.NamedTemporaryFile() as file, burning(shares):
        with pinged(nodes.ports, Path(file.name)):
            if variant.load:
                record = asyncio.run(load(settings, seconds, seed))
                found.asked = sum(count for name, count in record.counts.items() if name.startswith("asked: "))
                found.written = record.counts["written: acknowledged"]
            else:
                time.sleep(seconds)
        found.pings = pings(Path(file.name), [])
    found.seconds, found.load_cpu = time.monotonic() - begin, time.process_time() - own
    found.worker_cpu, found.waited = used(nodes.workers) - before[0], waited(nodes.redis) - before[1]
    found.rounds = [float(np.percentile(found.pings, 99))]
    return found


def show(results: dict[str, Result]) -> None:
    idle = np.percentile(results["idle"].pings, 99) if "idle" in results else None
    for name, found in results.items():
        p50, p90, p99 = np.percentile(found.pings, [50, 90, 99])
        ratio = "" if idle is None else f" {p99 / idle:4.1f}x"
        print(
            f"  {name:15} p50 {p50:6.3f}  p90 {p90:6.2f}  p99 {p99:6.2f} ms{ratio}  {len(found.pings):,} pings;"
            f" {found.asked / found.seconds:.1f} asked/s, {found.written / found.seconds:.1f} written/s,"
            f" main threads waited {found.waited / found.seconds * 1e3:.0f} ms/s;"
            f" p99 of rounds {' '.join(f'{one:.0f}' for one in found.rounds)}"
        )


def nodes_of(cluster: LocalCluster) -> Nodes:
    found = Nodes(list(range(cluster.state.port, cluster.state.port + 6)), [], [])
    for port in found.ports:
        with node.connected(port) as client, suppress(KeyError):
            found.redis.append(client.info("server")["process_id"])
            found.workers.append(client.info("shardqa")["shardqa_worker_pid"])
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("variants", nargs="*", metavar="VARIANT", choices=[*VARIANTS, []])
    given = parser.parse_args()
    results = {name: Result() for name in given.variants or VARIANTS}
    with (
        tempfile.TemporaryDirectory(prefix="shardqa-bench-") as folder,
        running_cluster(Path(folder) / "data", shards=3, replicas=1, extra=EXTRA) as cluster,
    ):
        prepare(cluster)
        nodes, last = nodes_of(cluster), Result()
        for number in range(given.rounds):
            for name, whole in results.items():
                found = measure(cluster, nodes, VARIANTS[name], given.seconds, 100 * number, last)
                last = found if VARIANTS[name].load else last
                whole.add(found)
    print(f"PING of 6 nodes under 4 askers and 2 writers, {given.rounds} x {given.seconds:g} s, {machine.label()}")
    show(results)


if __name__ == "__main__":
    main()
