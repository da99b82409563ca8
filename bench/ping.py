"""PING p99 on a shard, idle and while its reader is fully busy, in alternating phases of one run.

The load: 8 connections that run the reader on 5 x 160 tokens without a pause, through AI.MODELEXECUTE on that shard.
"""

import threading
import time

import numpy as np
from common import OUTPUTS, percentiles, temporary_cluster
from redis import Redis

from shardqa import machine

PHASES = 4  # idle and busy in turn
SECONDS = 5.0  # of one phase
LOADERS = 8
SHAPE = (5, 160)


def ping_for(client: Redis, seconds: float) -> list[float]:
    times, end = [], time.perf_counter() + seconds
    while (start := time.perf_counter()) < end:
        client.ping()
        times.append(time.perf_counter() - start)
        time.sleep(0.0005)  # a client that only ever pings would measure itself
    return times


class Load:
    """Threads that keep the reader busy between start and stop."""

    def __init__(self, port: int, model: str) -> None:
        self.busy = threading.Event()
        self.over = threading.Event()
        self.done = 0  # runs of the reader
        self.threads = [threading.Thread(target=self._run, args=(port, model, i)) for i in range(LOADERS)]
        for thread in self.threads:
            thread.start()

    def _run(self, port: int, model: str, number: int) -> None:
        client = Redis(port=port)
        outputs = [f"out:{{06S}}:{number}:{name}" for name in OUTPUTS]
        while not self.over.is_set():
            if self.busy.wait(0.1):
                command = ("AI.MODELEXECUTE", model, "INPUTS", 3, *INPUTS, "OUTPUTS", len(OUTPUTS), *outputs)
                client.execute_command(*command)
                self.done += 1

    def stop(self) -> None:
        self.busy.set()
        self.over.set()
        for thread in self.threads:
            thread.join()


INPUTS = [f"in:{{06S}}:{name}" for name in ("ids", "mask", "types")]


def store_inputs(client: Redis) -> None:
    rng = np.random.default_rng(7)
    arrays = [rng.integers(1_000, 30_000, SHAPE), np.ones(SHAPE, np.int64), np.zeros(SHAPE, np.int64)]
    for key, array in zip(INPUTS, arrays, strict=True):
        client.execute_command("AI.TENSORSET", key, "INT64", *SHAPE, "BLOB", array.astype(np.int64).tobytes())


def main() -> None:
    with temporary_cluster(shards=1) as cluster, Redis(port=cluster.state.port) as client:
        store_inputs(client)
        (model, _), *_ = client.execute_command("AI._MODELSCAN")
        load = Load(cluster.state.port, model.decode())
        idle, busy = list[float](), list[float]()
        try:
            for _ in range(PHASES):
                load.busy.clear()
                time.sleep(0.5)
                idle += ping_for(client, SECONDS)
                load.busy.set()
                time.sleep(0.5)
                busy += ping_for(client, SECONDS)
        finally:
            load.stop()
    ratio = np.percentile(busy, 99) / np.percentile(idle, 99)
    print(f"PING while the reader is busy ({load.done:,} runs of {SHAPE[0]} x {SHAPE[1]} tokens), {machine.label()}")
    print(f"  idle   {percentiles(idle)}  ({len(idle):,} pings)")
    print(f"  busy   {percentiles(busy)}  ({len(busy):,} pings)")
    print(f"  p99 ratio {ratio:.2f}x (wanted <= 3x)")


if __name__ == "__main__":
    main()
