"""Metrics of several API processes on one port: whichever is scraped tells the sum, and no counter ever falls."""

import os
import re
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from tests.api.conftest import Server, StartApi, running_api
from tests.nodes import free_port, wait_until

STARTED = re.compile(r"Started server process \[(\d+)\]")
READY = "Application startup complete"
COUNTED = re.compile(r'^shardqa_http_requests_total\{method="GET",route="/healthz",status="200"\} (\S+)$', re.MULTILINE)


@pytest.fixture
def pair(start_api: StartApi, monkeypatch: pytest.MonkeyPatch) -> Server:
    """Two processes, both ready, without a cluster."""
    monkeypatch.setenv("WEB_CONCURRENCY", "2")
    server = start_api(redis=f"127.0.0.1:{free_port()}")
    wait_until(lambda: server.log().count(READY) == 2, "both processes are ready")
    return server


def processes(server: Server) -> list[int]:
    return [int(pid) for pid in STARTED.findall(server.log())]


@contextmanager
def stopped(pid: int) -> Iterator[None]:
    """While it stands still, the other process takes every new connection."""
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def get(server: Server, path: str) -> httpx.Response:
    """Over a connection of its own."""
    return httpx.get(server.url + path, timeout=90)


def counted(server: Server) -> float:
    found = COUNTED.search(get(server, "/metrics").text)
    return float(found[1]) if found else 0.0


def test_a_process_tells_what_the_other_has_counted(pair: Server) -> None:
    first, second = processes(pair)
    for pid, requests in ((first, 3), (second, 4)):
        with stopped(pid):
            for _ in range(requests):
                get(pair, "/healthz")
            wait_until(lambda: counted(pair) in (3, 7), "the requests are counted")
    for pid in (first, second):
        with stopped(pid):
            assert counted(pair) == 7


def test_counters_only_rise(pair: Server) -> None:
    seen = []
    for _ in range(40):
        get(pair, "/healthz")
        seen.append(counted(pair))
    assert seen == sorted(seen)
    wait_until(lambda: counted(pair) == 40, "all requests are counted")


def test_what_a_killed_process_has_counted_stays(pair: Server) -> None:
    first, second = processes(pair)
    with stopped(first):
        for _ in range(5):
            get(pair, "/healthz")
        wait_until(lambda: counted(pair) == 5, "the requests are counted")
    os.kill(second, signal.SIGKILL)
    wait_until(lambda: pair.log().count(READY) == 3, "another one is started in its place")
    assert counted(pair) == 5
    assert "shardqa_http_in_flight 1.0" in get(pair, "/metrics").text


def test_the_folder_of_the_counts_goes_with_the_processes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("WEB_CONCURRENCY", "2")
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    with running_api(tmp_path, redis=f"127.0.0.1:{free_port()}") as server:
        wait_until(lambda: server.log().count(READY) == 2, "both processes are ready")
        assert list(tmp_path.glob("shardqa-metrics-*/*.db"))
    assert not list(tmp_path.glob("shardqa-metrics-*"))
