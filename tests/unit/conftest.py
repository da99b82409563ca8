"""Fixtures of the unit tests."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.unit.worker_client import WorkerClient


@pytest.fixture
def start_worker(tmp_path: Path) -> Iterator[Callable[..., WorkerClient]]:
    """Starts workers that end with the test."""
    clients: list[WorkerClient] = []

    def start(**options: Any) -> WorkerClient:
        clients.append(WorkerClient(tmp_path, **options))
        return clients[-1]

    yield start
    for client in clients:
        if not client.closed:
            client.close()


@pytest.fixture
def worker(start_worker: Callable[..., WorkerClient]) -> WorkerClient:
    """A started worker outside any cluster."""
    client = start_worker()
    client.start()
    return client
