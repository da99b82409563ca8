"""The cost of a session whose packages clash with the worker's, and so have a process of their own.

    python bench/interpreter.py

Prints the process' memory and start, and what a trigger takes in it and in the worker; numpy comes from the index.
"""

import itertools
import os
import re
import signal
import time
from pathlib import Path
from typing import Any

from common import percentiles, temporary_cluster, worker_pid
from redis import Redis, ResponseError

REQUIRED = ("REQUIREMENTS", "numpy==1.26.4")
TRIGGER = "GB('CommandReader').map(lambda r: {what}).register(trigger='{name}', mode='async_local')"
CALLS = 2_000


def times(client: Redis, *command: Any) -> list[float]:
    """Returns the seconds that each of many calls took."""
    starts = [time.perf_counter()]
    for _ in range(CALLS):
        client.execute_command(*command)
        starts.append(time.perf_counter())
    return [after - before for before, after in itertools.pairwise(starts)]


def children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def served(client: Redis) -> bool:
    try:
        return bool(client.execute_command("RG.PYEXECUTE", ""))
    except ResponseError:
        return False


with temporary_cluster(1, prepared=False) as cluster, Redis(port=cluster.state.port, socket_timeout=600) as client:
    client.execute_command("RG.PYEXECUTE", "import numpy", *REQUIRED)
    worker = worker_pid(cluster.state.port)
    (pid,) = [below for child in children(worker) for below in children(child)]
    rollup = Path(f"/proc/{pid}/smaps_rollup").read_text()
    sizes = {name: int(kilobytes) // 1024 for name, kilobytes in re.findall(r"(\w+): +(\d+) kB", rollup)}
    own = sizes["Private_Dirty"] + sizes["Private_Clean"]
    print(f"an interpreter with numpy: {sizes['Rss']} MB resident, {own} MB of them its own")
    os.kill(pid, signal.SIGKILL)  # the worker ends with it, and comes back
    while client.info("shardqa").get("shardqa_worker_pid") in (0, worker) or not served(client):
        time.sleep(0.1)
    start = time.perf_counter()
    client.execute_command("RG.PYEXECUTE", "import numpy", *REQUIRED)
    print(f"begins, with numpy, in {time.perf_counter() - start:.2f} s")
    for what, name in (("1", "plain"), ("execute('PING')", "executes")):
        for where, words in (("worker", ()), ("interpreter", REQUIRED)):
            code = TRIGGER.format(what=what, name=f"{name}-{where}")
            client.execute_command("RG.PYEXECUTE", code, *words)
            print(f"{name:9} in the {where:12} {percentiles(times(client, 'RG.TRIGGER', f'{name}-{where}'))}")
