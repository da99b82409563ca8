"""`python -m tests.faults.soak MINUTES [SEED]`: a cluster with replicas under load and one harm after another.

Four askers (two by engines of their own, two by one API process), two writers, and one who sends that process large
bodies which it refuses: it has to give their memory back. Each harm is followed by a look how
long it took until all shards answer and the harmed one takes documents again. In the end the history is checked
(checker.py), and what is left (aftermath.py). Prints a report; exits with 1 where anything was wrong.
"""

import asyncio
import os
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from random import Random
from time import monotonic

import httpx
from redis.exceptions import RedisError

from shardqa import keys
from shardqa.config import Settings
from shardqa.engine import Engine
from shardqa.errors import ShardqaError
from tests.api.conftest import running_api
from tests.faults import aftermath, documents, harms, report
from tests.faults.checker import Violation, check, largest_lag
from tests.faults.harms import Harmed
from tests.faults.report import Memory, Recovery
from tests.faults.subject import EXTRA, Subject, resident
from tests.faults.workload import Asker, Record, Stop, Writer
from tests.nodes import prepare, running_cluster

CORPUS = "soak"
IDLE_SECONDS = 10.0  # of pings before the load
CALM = (2.0, 6.0)  # seconds between a cluster that is whole and the next harm
SAMPLE_SECONDS = 5.0
LAZY_SECONDS = 2.0  # until what was unlinked is free, on replicas too
PROBE_SECONDS = 30.0  # after a harm until it counts as never recovered
PROBES = tuple(f"{thing} of {place}" for thing in ("harbour", "station") for place in documents.PLACES)
HARMS_OF_NODES = {
    harms.kill_master, harms.restart_master, harms.hang_master, harms.hang_master_long, harms.kill_replica,
}  # fmt: skip
ODD_SECONDS = 3.0  # between two bodies that are refused
ODD = (  # method, path, body: no PDF, records without a text, no JSON
    ("PUT", "/v1/files/odd.pdf", bytes(16_000_000)),
    ("POST", "/v1/documents", b"[" + b",".join([b'{"x": 1}'] * 10_000) + b"]"),
    ("POST", "/v1/ask", b'{"question": "' + 1_900_000 * b"x"),
)
MOST = 250.0  # megabytes of the API process after all of it; 85 at its start
LAG = 60.0  # KNOWN_SECONDS of engine/epochs.py: what the documentation promises


class Soak:
    done: Sequence[harms.Harm] = harms.HARMS

    def __init__(self, subject: Subject, settings: Settings, url: str, api: int, seed: int) -> None:
        self.subject, self.settings, self.url, self.api = subject, settings, url, api
        self.chance = Random(seed)
        self.record = Record()
        self.recoveries: list[Recovery] = []
        self.memory: Memory = defaultdict(list)
        self.excluded: list[tuple[int, float, float]] = []  # port, from, to: no ping is expected
        self.misses: list[tuple[str, float, float, str]] = []  # probes: harm, seconds from it, seconds, what was said
        self.stop = Stop()

    async def run(self, seconds: float) -> None:
        names = documents.NAMES
        seed = self.chance.randrange
        askers = [Asker(self.record, self.settings, Random(seed(10**6)), self.url if n % 2 else None) for n in range(4)]
        writers = [Writer(self.record, self.settings, names[n::2], Random(seed(10**6)), 1, 0.1) for n in range(2)]
        clients: list[Asker | Writer] = [*askers, *writers]
        async with asyncio.TaskGroup() as group:
            for one in clients:
                group.create_task(one.run(self.stop))
            group.create_task(self._sample())
            group.create_task(self._send_odd())
            group.create_task(self._harm(seconds))

    async def _harm(self, seconds: float) -> None:
        until, engine = monotonic() + seconds, await Engine.connect(self.settings)
        prober = Writer(self.record, self.settings, PROBES, self.chance, 1, 0.1)
        order: list[harms.Harm] = []
        try:
            while monotonic() < until:
                order = order or self.chance.sample(self.done, len(self.done))
                await asyncio.to_thread(self.subject.wait_until_whole)
                await asyncio.sleep(self.chance.uniform(*CALM))
                await self._one(order.pop(), engine, prober)
            await asyncio.to_thread(self.subject.wait_until_whole)
        finally:
            self.stop.is_set = True
            await prober.close()
            await engine.close()

    async def _one(self, harm: harms.Harm, engine: Engine, prober: Writer) -> None:
        begin = monotonic()
        fault = await asyncio.to_thread(harm, self.subject, self.chance)
        watch = asyncio.create_task(asyncio.to_thread(fault.watch))
        asks, writes = await asyncio.gather(
            self._until_whole(fault, engine), self._until_written(fault, engine, prober)
        )
        await watch
        failover = None if fault.taken_over is None else fault.taken_over - fault.at
        self.recoveries.append(Recovery(fault.name, failover, asks, writes))
        self.record.counts[f"harm: {fault.name}"] += 1
        print(f"  {monotonic():.1f} {fault.name} {fault.port}: {failover} {asks:.2f} {writes:.2f}", flush=True)
        if asks > PROBE_SECONDS:
            print(f"    the last question: {self.misses[-1][-1]}", flush=True)
        await asyncio.to_thread(fault.mend)
        await asyncio.to_thread(self.subject.wait_until_whole)
        if harm in HARMS_OF_NODES:
            self.excluded.append((fault.port, begin, monotonic()))

    async def _until_whole(self, harmed: Harmed, engine: Engine) -> float:
        """Seconds from the harm until a question begun later was answered by all shards."""
        while monotonic() - harmed.at < PROBE_SECONDS:
            begin, why = monotonic(), ""
            try:
                answer = await engine.ask(f"Who built the bridge of Arnsby? {self.chance.random()}", fresh=True)
                if not answer.partial:
                    return monotonic() - harmed.at
                why = f"without {', '.join(answer.failed)}"
            except ShardqaError as fault:
                why = str(fault)
            self.misses.append((harmed.name, begin - harmed.at, monotonic() - begin, why))
            await asyncio.sleep(0.02)
        return float("inf")

    async def _until_written(self, harmed: Harmed, engine: Engine, prober: Writer) -> float:
        """Seconds from the harm until a write on the harmed shard was acknowledged."""
        owners = {name: self._owner(engine, name) for name in PROBES}
        name = next((name for name, port in owners.items() if port == harmed.port), PROBES[0])
        while monotonic() - harmed.at < PROBE_SECONDS:
            if await prober.write(engine, name, put=True):
                return monotonic() - harmed.at
            await asyncio.sleep(0.02)
        return float("inf")

    def _owner(self, engine: Engine, name: str) -> int:
        try:
            return int(engine.shards.owner(keys.doc(CORPUS, name)).port)
        except ShardqaError:
            return 0

    async def _send_odd(self) -> None:
        async with httpx.AsyncClient(
            base_url=self.url, timeout=90, headers={"Content-Type": "application/json"}
        ) as api:
            while not self.stop.is_set:
                method, path, body = self.chance.choice(ODD)
                status = (await api.request(method, path, content=body)).status_code
                self.record.counts[f"{path}, odd: {status}"] += 1
                await asyncio.sleep(ODD_SECONDS)
        if (size := resident(self.api) or 0.0) > MOST:
            self.record.faults.append(f"the API process has {size:.0f} MB, {MOST:.0f} are wanted at most")

    async def _sample(self) -> None:
        while not self.stop.is_set:
            await asyncio.to_thread(self._sample_once)
            await asyncio.sleep(SAMPLE_SECONDS)

    def _sample_once(self) -> None:
        now, roles = monotonic(), self._roles()
        samples: list[tuple[str, int, str]] = [("API", self.api, "")]
        for port in self.subject.ports:
            role = roles.get(port, "")
            samples.append((f"Redis, {role}", self.subject.pid(port), role))
            samples.append((f"worker of a {role}", self.subject.worker(port), role))
        for kind, pid, role in samples:
            size = resident(pid) if pid else None
            if size is not None and (role or kind == "API"):
                self.memory[kind, pid, role].append((now, size))

    def _roles(self) -> dict[int, str]:
        """The role of each node, by port; empty where none tells."""
        try:
            return {one.port: one.role for one in self.subject.nodes()}
        except RedisError:
            return {}


def used(subject: Subject) -> dict[int, float]:
    """Megabytes of each Redis, in its own words, by port."""
    found = {}
    for port in subject.ports:
        with subject.client(port) as client:
            found[port] = int(client.info("memory")["used_memory"]) / 2**20
    return found


def drop_answers(subject: Subject) -> None:
    """Drops what a cluster keeps for an hour: answers, rankings."""
    for master in subject.masters():
        with subject.client(master.port) as client, client.pipeline(transaction=False) as pipeline:
            for prefix in ("answer", "ask", "rank"):
                for name in client.scan_iter(f"{prefix}:*", count=1_000):
                    pipeline.unlink(name)
            pipeline.execute()
    time.sleep(LAZY_SECONDS)


@contextmanager
def pinging(subject: Subject, file: Path) -> Iterator[None]:
    command = [sys.executable, "-m", "tests.faults.pinger", *map(str, subject.ports)]
    with file.open("wb") as out:
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=out)
    try:
        yield
    finally:
        assert process.stdin is not None
        process.stdin.close()
        process.wait(30)


def pings(file: Path, excluded: list[tuple[int, float, float]]) -> list[float]:
    """Milliseconds."""
    rows = (line.split() for line in file.read_text().splitlines())
    found = [(float(row[0]), int(row[1]), float(row[2])) for row in rows if len(row) == 3]
    return [
        milliseconds
        for at, port, milliseconds in found
        if not any(port == other and begin <= at <= end for other, begin, end in excluded)
    ]


async def _left(soak: Soak, alone: Settings) -> list[str]:
    engines = [await Engine.connect(settings) for settings in (soak.settings, alone)]
    try:
        for name in PROBES:
            await engines[0].documents.delete(CORPUS, name)
        return await aftermath.check(soak.record, engines[0], soak.subject, engines[1])
    finally:
        for engine in engines:
            await engine.close()


def soak(minutes: float, seed: int) -> bool:
    """Whether all was right."""
    with tempfile.TemporaryDirectory(prefix="shardqa-soak-") as name:
        folder = Path(name)
        with running_cluster(folder / "data", shards=3, replicas=1, extra=EXTRA) as cluster:
            prepare(cluster)
            subject = Subject(cluster)
            before = used(subject)
            with pinging(subject, folder / "idle"):
                asyncio.run(asyncio.sleep(IDLE_SECONDS))
            settings = Settings(redis=",".join(f"127.0.0.1:{port}" for port in subject.ports), corpus=CORPUS)
            options = {"redis": settings.redis, "corpus": CORPUS, "timeout": settings.timeout}
            with (
                running_api(folder, "", **options, cache_megabytes=4) as api,  # full soon: what grows then is no cache
                pinging(subject, folder / "pings"),
            ):
                assert api.pid is not None
                run = Soak(subject, settings, api.url, api.pid, seed)
                asyncio.run(run.run(minutes * 60))
            with running_cluster(folder / "alone", shards=1) as other:
                prepare(other)
                left = asyncio.run(_left(run, Settings(redis=other.seed(), corpus=CORPUS, timeout=60)))
            after = used(subject)
            drop_answers(subject)
            print("\n".join(report.used(before, after, used(subject))), flush=True)
        return _print(run, left, pings(folder / "idle", []), pings(folder / "pings", run.excluded))


def _print(run: Soak, left: list[str], idle: list[float], loaded: list[float]) -> bool:
    violations: list[Violation] = check(run.record.history, LAG)
    faults = [*run.record.faults, *left]
    lag = largest_lag(run.record.history)
    for lines in (
        report.counts(run.record.counts),
        report.recoveries(run.recoveries),
        report.memory(run.memory),
        report.pings(idle, loaded),
        [f"  {'slowest answer':44} {run.record.slowest:.1f} s"],
        report.violations(violations, faults, lag),
    ):
        print("\n".join(lines), flush=True)
    print("\n".join(run.record.retries[:20]))
    return not violations and not faults


def machine() -> str:
    model = next(
        line.split(":", 1)[1].strip() for line in Path("/proc/cpuinfo").read_text().splitlines() if "model name" in line
    )
    return f"{os.cpu_count()} cores of {model}, load {os.getloadavg()[0]:.1f} before"


def main() -> None:
    minutes = float(sys.argv[1]) if len(sys.argv) > 1 else 5.0
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else int.from_bytes(os.urandom(3))
    print(
        f"{minutes:g} minutes, seed {seed}: 3 shards with a replica each, 4 askers, 2 writers; {machine()}", flush=True
    )
    sys.exit(0 if soak(minutes, seed) else 1)


if __name__ == "__main__":
    main()
