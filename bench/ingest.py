"""Ingest into three shards: seconds, MB of text a minute and processor time, of two kinds of files.

    python bench/ingest.py [prose] [rows]

`prose` is the CIA World Factbook (5.6 M characters in 267 documents; skipped where it is absent), `rows` a CSV whose
3,000 rows are a document each. `shardqa ingest` reads both as a user would, the HTTP API the second one as well.
"""

import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from common import SHARED, memory, processor_seconds, settings_of, shown, temporary_cluster, worker_pid

from shardqa import Client, machine
from shardqa.cluster import node, ports
from shardqa.cluster.local import LocalCluster
from shardqa.errors import ClusterUnavailable

PROSE = SHARED / "data" / "corpora" / "cia_factbook.txt.gz"
PROSE_MEGABYTES = 5.6
ROWS = 3_000
MADE = ["iron", "pine", "glass", "cedar", "copper", "hemp", "steel", "brass", "zinc", "oak"]
GOODS = ["lamp", "ladder", "bowl", "shelf", "kettle", "rope", "saw", "lantern", "bucket", "chair"]
TOWNS = ["Aldby", "Birk", "Corran", "Dunmore", "Elstow", "Fenwick", "Greyport", "Harrow"]


def table(folder: Path) -> Path:
    lines = ["item,price,town,stock"]
    for n in range(ROWS):
        goods = f"{MADE[n % 10]} {GOODS[n // 10 % 10]} {n}"
        lines.append(f"{goods},{n * 7 % 900 / 10:.1f},{TOWNS[n * 3 % 8]},{n * 13 % 97}")
    path = folder / "stock.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


def processors(cluster: LocalCluster) -> float:
    """Seconds that nodes and workers have used, and the programs that ended."""
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = spent.ru_utime + spent.ru_stime
    for _, port in cluster.addresses:
        with node.connected(port) as client:
            server = int(client.info("server")["process_id"])
        seconds += processor_seconds(server) + processor_seconds(worker_pid(port))
    return seconds


def measure(cluster: LocalCluster, what: str, megabytes: float, work: Callable[[], object]) -> None:
    before, start = processors(cluster), time.perf_counter()
    work()
    seconds, spent = time.perf_counter() - start, processors(cluster) - before
    print(
        f"  {what:22} {seconds:6.2f} s, {megabytes / seconds * 60:6.1f} MB/min; processors {spent:5.2f} s", flush=True
    )


def by_command(cluster: LocalCluster, path: Path, corpus: str) -> None:
    command = [sys.executable, "-m", "shardqa", "ingest", str(path), "--corpus", corpus, "--again"]
    subprocess.run([*command, "--redis", settings_of(cluster).redis], check=True)


@contextmanager
def api(cluster: LocalCluster) -> Iterator[Client]:
    port = ports.random_block(1, 0)
    environment = {**os.environ, "SHARDQA_REDIS": settings_of(cluster).redis, "SHARDQA_HTTP_PORT": str(port)}
    process = subprocess.Popen([sys.executable, "-m", "shardqa.api"], env=environment, stderr=subprocess.DEVNULL)
    try:
        with Client(f"http://127.0.0.1:{port}", timeout=600) as client:
            while process.poll() is None:
                try:
                    client.ready()
                    break
                except ClusterUnavailable:
                    time.sleep(0.1)
            yield client
    finally:
        process.terminate()
        process.wait()


def prose(cluster: LocalCluster) -> None:
    if not PROSE.is_file():
        print(f"skipped: {PROSE} is not here")
        return
    before = memory(cluster.addresses)
    measure(cluster, "prose by command", PROSE_MEGABYTES, lambda: by_command(cluster, PROSE, "cia"))
    after = memory(cluster.addresses)
    print(f"  redis-server RSS MB: {shown(before[0])} -> {shown(after[0])}")
    print(f"  workers' RSS MB:     {shown(before[1])} -> {shown(after[1])}")
    print(f"  largest program {resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024:.0f} MB")


def rows(cluster: LocalCluster) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = table(Path(folder))
        megabytes = path.stat().st_size / 1e6
        measure(cluster, "rows by command", megabytes, lambda: by_command(cluster, path, "rows"))
        measure(cluster, "the same rows again", megabytes, lambda: by_command(cluster, path, "rows"))
        with api(cluster) as client:
            client.add_file(path, corpus="warm")
            measure(cluster, "rows by HTTP", megabytes, lambda: client.add_file(path, corpus="http"))


def main() -> None:
    kinds = {"prose": prose, "rows": rows}
    print(f"ingest into 3 shards, {machine.label()}")
    with temporary_cluster(shards=3) as cluster:
        for kind in sys.argv[1:] or kinds:
            kinds[kind](cluster)


if __name__ == "__main__":
    main()
