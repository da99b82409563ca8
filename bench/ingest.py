"""Ingesting the CIA World Factbook (5.6 M characters) into three shards: MB a minute, and the memory it took.

Runs `shardqa ingest` as a user would, against a temporary cluster; skips where the corpus is absent.
"""

import resource
import subprocess
import sys
import time

from common import SHARED, machine, settings_of, temporary_cluster
from redis import Redis

from shardqa.cluster import ports

CORPUS = SHARED / "data" / "corpora" / "cia_factbook.txt.gz"


def resident(pid: int) -> float:
    """Resident memory of a process, MB."""
    with open(f"/proc/{pid}/status") as status:
        line = next(line for line in status if line.startswith("VmRSS"))
    return int(line.split()[1]) / 1024


def worker_pid(port: int) -> int:
    with Redis(host=ports.HOST, port=port, decode_responses=True) as client:
        return int(client.info("shardqa")["shardqa_worker_pid"])


def memory(addresses: list[tuple[str, int]]) -> tuple[list[float], list[float]]:
    """Resident MB of every redis-server and of every worker."""
    servers, workers = [], []
    for host, port in addresses:
        with Redis(host=host, port=port, decode_responses=True) as client:
            servers.append(client.info("memory")["used_memory_rss"] / 2**20)
        workers.append(resident(worker_pid(port)))
    return servers, workers


def shown(values: list[float]) -> str:
    return " ".join(f"{value:.0f}" for value in values)


def main() -> None:
    if not CORPUS.is_file():
        print(f"skipped: {CORPUS} is not here")
        return
    with temporary_cluster(shards=3) as cluster:
        before = memory(cluster.addresses)
        start = time.perf_counter()
        command = [sys.executable, "-m", "shardqa", "ingest", str(CORPUS), "--corpus", "cia"]
        subprocess.run([*command, "--redis", settings_of(cluster).redis], check=True)
        seconds = time.perf_counter() - start
        after = memory(cluster.addresses)
    loader = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    megabytes = 5.6
    print(f"ingest of {CORPUS.name} into 3 shards, {machine()}")
    print(f"  {seconds:.1f} s, {megabytes / seconds * 60:.1f} MB/min of text (wanted >= 2)")
    print(f"  redis-server RSS MB: {shown(before[0])} -> {shown(after[0])}")
    print(f"  workers' RSS MB:     {shown(before[1])} -> {shown(after[1])}")
    print(f"  largest child process (the loader or a node) {loader:.0f} MB")


if __name__ == "__main__":
    main()
