"""Ingesting the CIA World Factbook (5.6 M characters) into three shards: MB a minute, and the memory it took.

Runs `shardqa ingest` as a user would, against a temporary cluster; skips where the corpus is absent.
"""

import resource
import subprocess
import sys
import time

from common import SHARED, memory, settings_of, shown, temporary_cluster

from shardqa import machine

CORPUS = SHARED / "data" / "corpora" / "cia_factbook.txt.gz"


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
    print(f"ingest of {CORPUS.name} into 3 shards, {machine.label()}")
    print(f"  {seconds:.1f} s, {megabytes / seconds * 60:.1f} MB/min of text (wanted >= 2)")
    print(f"  redis-server RSS MB: {shown(before[0])} -> {shown(after[0])}")
    print(f"  workers' RSS MB:     {shown(before[1])} -> {shown(after[1])}")
    print(f"  largest child process (the loader or a node) {loader:.0f} MB")


if __name__ == "__main__":
    main()
