"""The nodes under attack: a master and its replica, each with an append only file, and how one sees that they stand."""

import os
import shlex
import socket
import subprocess
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, Self

import hiredis

from tests.module.servers import MODULE, PRELOAD, ROOT, Server, command, in_sync, until

WORKER = Path(__file__).with_name("worker.py")
QUICK = "TIMEOUT 2000 HEARTBEAT 10000"
CONNECTIONS = 16  # so that a client that waits for the worker holds up no other
PATIENCE = 300.0  # seconds; a sanitizer is slow, and machines are shared


class Fault(AssertionError):
    """A crash, a sanitizer's report, or data sets that differ."""


class Pair:
    def __init__(self, folder: Path) -> None:
        self.compared = 0  # digests that were equal, of which there are two a round
        self.deaths = 0  # of workers
        self.master = Tortured(folder / "master", arguments=QUICK).start()
        self.replica = Tortured(folder / "replica", f"replicaof 127.0.0.1 {self.master.port}", arguments=QUICK).start()
        self.follow()

    def follow(self) -> None:
        until(lambda: self.replica.client().info("replication")["master_link_status"] == "up", PATIENCE)

    def settle(self) -> None:
        """Nothing waits, and the replica has all; a worker that still computes is ended."""
        if self.master.info()["waiting_clients"]:
            self.master.kill_worker()
        until(lambda: self._idle(), PATIENCE)
        in_sync(self.master, self.replica)

    def _idle(self) -> bool:
        info = self.master.info()
        busy = info["deferred_bytes"] or info["waiting_clients"] or info["received_bytes"]
        return info["worker_state"] == "ready" and not busy

    def check(self) -> None:
        """Raises Fault where the two differ, or the file from memory."""
        self.healthy()
        self.settle()
        before = digest(self.master)
        self.equal(before, digest(self.replica), "master and replica differ")
        self.master.client(socket_timeout=PATIENCE).execute_command("DEBUG", "LOADAOF")
        self.equal(before, digest(self.master), "the append only file gives another data set")
        self.rewrite()
        self.healthy()

    def restart(self) -> None:
        """Raises Fault where the file gives another data set after a restart."""
        before = digest(self.master)
        self.deaths += self.master.info()["worker_restarts"]
        self.master.restart()
        self.equal(before, digest(self.master), "a restart gives another data set")
        self.follow()
        self.healthy()

    def equal(self, left: object, right: object, otherwise: str) -> None:
        if left != right:
            raise Fault(f"{otherwise}: {left} and {right}")
        self.compared += 1

    def rewrite(self) -> None:
        """The file becomes short again, so that reading it takes no longer with every round."""
        client = self.master.client()
        until(lambda: not client.info("persistence")["aof_rewrite_in_progress"], PATIENCE)
        client.bgrewriteaof()
        until(lambda: not rewriting(client.info("persistence")), PATIENCE)
        if client.info("persistence")["aof_last_bgrewrite_status"] != "ok":
            raise Fault(f"the append only file can't be rewritten:\n{self.master.log[-2000:]}")

    def healthy(self) -> None:
        for server in (self.master, self.replica):
            server.healthy()

    def stop(self) -> None:
        for server in (self.replica, self.master):
            server.stop()


def rewriting(info: dict[str, Any]) -> bool:
    return bool(info["aof_rewrite_in_progress"] or info["aof_rewrite_scheduled"])


@cache
def sanitized() -> tuple[Path, str]:
    """The module that sanitizers watch, and the library that has to be loaded before it: those that the environment
    names (servers.py), else built here."""
    if PRELOAD:
        return MODULE, PRELOAD
    subprocess.run(["make", "-s", "-j2", "-C", str(ROOT / "module"), "sanitized"], check=True)
    compiler = [os.environ.get("CC", "cc"), "-print-file-name=libasan.so"]
    found = subprocess.run(compiler, check=True, capture_output=True, text=True).stdout.strip()
    return ROOT / "module" / "build" / "shardqa-asan.so", found


class Tortured(Server):
    """A node with a sanitized module, whose worker does what torture asks of it."""

    def __init__(self, folder: Path, *options: str, **named: Any) -> None:
        module, library = sanitized()
        super().__init__(folder, *options, module=module, preload=library, **named)

    def launch(self) -> None:
        (self.folder / "python").write_text(f"#!/bin/sh\nexec {shlex.quote(sys.executable)} -I {WORKER}\n")
        super().launch()

    def healthy(self) -> None:
        """Raises Fault when it has ended, or a sanitizer has said something."""
        if self.process is None or self.process.poll() is not None:
            raise Fault(f"redis-server ended:\n{self.log[-4000:]}\n{self.reported()}")
        if "BUG REPORT" in self.log:
            raise Fault(self.log[-4000:])
        if reported := self.reported():
            raise Fault(reported)

    def reported(self) -> str:
        """Returns a report of the sanitizers, or nothing; an allocation that they refused is but a warning."""
        said = [path.read_text(errors="replace") for path in self.folder.glob("asan*")] + [self.log]
        return next((text[:8000] for text in said if "ERROR: AddressSanitizer" in text or "runtime error:" in text), "")


def digest(server: Server) -> tuple[Any, ...]:
    """Returns what stands for the keys, and counts of what is registered."""
    info = server.info()
    keys = server.client(socket_timeout=PATIENCE).execute_command("DEBUG", "DIGEST")
    return keys, info["sessions"], info["registrations"], info["hooks"]


class Pipes:
    """Some connections of one server: batches go to them in turn, and all replies are read."""

    def __init__(self, server: Server, count: int = CONNECTIONS) -> None:
        self._open = [socket.create_connection(("127.0.0.1", server.port), PATIENCE) for _ in range(count)]

    def send(self, batches: Sequence[Sequence[bytes]]) -> None:
        """Each batch is a list of whole commands as RESP; as many at once as there are connections."""
        for first in range(0, len(batches), len(self._open)):
            part = batches[first : first + len(self._open)]
            for connection, batch in zip(self._open, part, strict=False):
                connection.sendall(b"".join(batch))
            for connection, batch in zip(self._open, part, strict=False):
                read(connection, len(batch))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for connection in self._open:
            connection.close()


def read(connection: socket.socket, count: int) -> list[Any]:
    """Reads so many replies; errors are items."""
    reader = hiredis.Reader()
    replies: list[Any] = []
    while len(replies) < count:
        received = connection.recv(1 << 20)
        if not received:
            raise Fault(f"a connection ended after {len(replies)} of {count} replies")
        reader.feed(received)
        while (reply := reader.gets()) is not False:
            replies.append(reply)
    return replies


def replies_of(server: Server, *commands: Sequence[Any]) -> list[Any]:
    """The replies to these on a connection of their own."""
    with socket.create_connection(("127.0.0.1", server.port), PATIENCE) as connection:
        connection.sendall(b"".join(command(*words) for words in commands))
        return read(connection, len(commands))
