"""An answer that the process keeps, over HTTP: requests a second and their times, by number of connections.

    bench/http_cached.py [http://127.0.0.1:8080] [question] [corpus]

One API process, asked by one process of raw sockets, each connection with one request at a time. `/healthz` stands
beside it: what an empty request costs. `cpu_us` is the API's processor time a request, which a busy machine changes
least.
"""

import asyncio
import json
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import cast
from urllib.parse import urlsplit

import uvloop
from common import processor_seconds

from shardqa_toolchain.cli.times import percentile

SECONDS = 5.0  # of each row
CONNECTIONS = (1, 16)


class Client(asyncio.Protocol):
    """Sends the request again as soon as its reply has come."""

    def __init__(self, request: bytes, times: list[float]) -> None:
        self._request, self._times = request, times
        self._got, self._length, self._sent = b"", 0, 0.0
        self.stop = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's is no subclass
        self._send()

    def _send(self) -> None:
        self._got, self._length, self._sent = b"", 0, time.perf_counter()
        self._transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        self._got += data
        head, end, body = self._got.partition(b"\r\n\r\n")
        if not end:
            return
        if not self._length:
            assert head.startswith(b"HTTP/1.1 200"), self._got[:300]
            self._length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
        if len(body) < self._length:
            return
        self._times.append(time.perf_counter() - self._sent)
        if self.stop:
            self._transport.close()
        else:
            self._send()


def listening(port: int) -> int:
    """The process that listens on a port of this machine."""
    lines = (line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:])
    inode = next(line[9] for line in lines if line[1].endswith(f":{port:04X}") and line[3] == "0A")
    for process in (place for place in Path("/proc").iterdir() if place.name.isdigit()):
        with suppress(OSError):
            if any(str(file.readlink()) == f"socket:[{inode}]" for file in (process / "fd").iterdir()):
                return int(process.name)
    raise SystemExit(f"nobody listens on port {port}")


async def measure(host: str, port: int, request: bytes, connections: int) -> dict[str, float]:
    times: list[float] = []
    pid = listening(port)
    loop = asyncio.get_running_loop()
    clients = [
        (await loop.create_connection(lambda: Client(request, times), host, port))[1] for _ in range(connections)
    ]
    start, before = time.perf_counter(), processor_seconds(pid)
    await asyncio.sleep(SECONDS)
    seconds, count, processor = time.perf_counter() - start, len(times), processor_seconds(pid) - before
    for client in clients:
        client.stop = True
    await asyncio.sleep(0.1)
    p50, p99 = (round(1000 * percentile(times[:count], share), 3) for share in (0.5, 0.99))
    row = {"connections": connections, "per_second": round(count / seconds), "p50_ms": p50, "p99_ms": p99}
    return {**row, "cpu_us": round(1e6 * processor / count)}


async def main(url: str, question: str, corpus: str) -> None:
    place = urlsplit(url)
    host, port = place.hostname or "127.0.0.1", place.port or 80
    body = json.dumps({"question": question, "corpus": corpus}).encode()
    end = f" HTTP/1.1\r\nHost: {host}\r\n"
    head = f"POST /v1/ask{end}Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    requests = {"/v1/ask": head.encode() + body, "/healthz": f"GET /healthz{end}\r\n".encode()}
    for path, request in requests.items():
        for connections in CONNECTIONS:
            print(json.dumps({"path": path, **await measure(host, port, request, connections)}), flush=True)


if __name__ == "__main__":
    given = dict(enumerate(sys.argv))
    question, corpus = given.get(2, "Who founded Saltmere Observatory?"), given.get(3, "seeds")
    uvloop.run(main(given.get(1, "http://127.0.0.1:8080"), question, corpus))
