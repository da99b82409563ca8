"""Fixtures: servers with the module, alone and with a replica."""

import fcntl
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from .servers import ROOT, Make, Server, replicate, until  # noqa: TID251 (this package is tests/module)


@pytest.fixture(scope="session", autouse=True)
def _built() -> None:
    with open(ROOT / "module" / "Makefile") as file:
        fcntl.flock(file, fcntl.LOCK_EX)  # pytest-xdist has several of us
        subprocess.run(["make", "-s", "-C", str(ROOT / "module")], check=True)


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Make]:
    """Starts servers that end with the test; every one must have survived it unless it was stopped."""
    servers: list[Server] = []

    def start(*options: str, **named: Any) -> Server:
        server = Server(tmp_path / f"redis{len(servers)}", *options, **named)
        servers.append(server)
        return server.start()

    yield start
    for server in reversed(servers):  # replicas first: a master that stops waits for them
        crashed = server.process is not None and server.process.poll() not in (None, 0, -9)
        server.stop()
        assert not crashed, server.log[-3000:]
        assert "REDIS BUG REPORT" not in server.log, server.log[-3000:]


@pytest.fixture
def server(make: Make) -> Server:
    return make()


@pytest.fixture
def pair(make: Make) -> tuple[Server, Server]:
    master = make()
    return master, replicate(make, master)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Server, Server]]:
    """Master and replica for all tests of a file that leave them as they are."""
    folder = tmp_path_factory.mktemp("shared")
    master = Server(folder / "master").start()
    replica = Server(folder / "replica", f"replicaof 127.0.0.1 {master.port}").start()
    until(lambda: replica.client().info("replication")["master_link_status"] == "up")
    yield master, replica
    for server in (replica, master):
        alive = server.process is not None and server.process.poll() is None
        server.stop()
        assert alive, server.log[-3000:]
