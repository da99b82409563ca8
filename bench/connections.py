"""10,000 connections to one API process, half of them with a part of a head: when health is answered, memory taken.

bench/connections.py [connections]
"""

from __future__ import annotations

import contextlib
import json
import resource
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

from shardqa.cluster import ports

PART = b"POST /v1/ask HTTP/1.1\r\nHost: localhost\r\nX-Part: "
LOOKS = 20  # at health, while the connections stand
LOOK_EVERY = 500  # connections


def main(count: int) -> None:
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    port = ports.random_block(1, 1)
    with tempfile.TemporaryFile() as log:
        env = {"SHARDQA_REDIS": "127.0.0.1:1", "SHARDQA_HTTP_PORT": str(port), "PATH": "/usr/bin:/bin"}
        api = subprocess.Popen([sys.executable, "-m", "shardqa.api"], env=env, stdout=log, stderr=log)
        try:
            print(json.dumps(measure(api.pid, port, count), indent=1))
        finally:
            api.terminate()
            api.wait(20)


def measure(pid: int, port: int, count: int) -> dict[str, float | int]:
    wait_until_alive(port)
    before, held, times = rss(pid), list[socket.socket](), list[float]()
    start = time.perf_counter()
    for n in range(count):
        held.append(socket.create_connection(("127.0.0.1", port), timeout=10))
        if n % 2:
            with contextlib.suppress(ConnectionError):  # it has given way already
                held[-1].sendall(PART)
        if n % LOOK_EVERY == 0:
            times.append(health(port))
    opened = time.perf_counter() - start
    peak = rss(pid)
    times += [health(port) for _ in range(LOOKS)]
    return {
        "connections": count,
        "opened_s": round(opened, 1),
        "health_ms_worst": round(1000 * max(times), 1),
        "health_ms_p50": round(1000 * sorted(times)[len(times) // 2], 1),
        "rss_mb_before": round(before / 1e6, 1),
        "rss_mb_more": round((max(peak, rss(pid)) - before) / 1e6, 1),
        "descriptors": len(list(Path(f"/proc/{pid}/fd").iterdir())),
    }


def health(port: int) -> float:
    start = time.perf_counter()
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz", timeout=30) as reply:
        assert reply.status == 200, reply.status
    return time.perf_counter() - start


def rss(pid: int) -> int:
    """Bytes."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * resource.getpagesize()


def wait_until_alive(port: int) -> None:
    deadline = time.monotonic() + 60
    while True:
        try:
            health(port)
            return
        except OSError:
            assert time.monotonic() < deadline, "the API did not start"
            time.sleep(0.1)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10_000)
