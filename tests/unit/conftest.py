"""Fixtures of the unit tests: real worker processes, with the test playing the module's side of the socket."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.unit.worker_client import WorkerClient, ok


@pytest.fixture
def start_worker(tmp_path: Path) -> Iterator[Callable[..., WorkerClient]]:
    """Starts workers that end with the test; with `started=False` they wait for START."""
    clients: list[WorkerClient] = []

    def start(started: bool = True, **options: Any) -> WorkerClient:
        clients.append(WorkerClient(tmp_path, **options))
        if started:
            clients[-1].start()
        return clients[-1]

    yield start
    for client in clients:
        if not client.ended:
            client.close()


@pytest.fixture(scope="module")
def shared_worker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WorkerClient]:
    client = WorkerClient(tmp_path_factory.mktemp("worker"))
    client.start()
    yield client
    client.close()


@pytest.fixture
def worker(shared_worker: WorkerClient) -> WorkerClient:
    """A started worker outside any cluster, shared by the tests of a file: use trigger names of your own."""
    shared_worker.seen.clear()
    shared_worker.answer = ok
    return shared_worker
