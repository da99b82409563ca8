"""A small run of bench/gears.py: its figures come out, whatever they are."""

import runpy
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from redis import Redis

from shardqa.cluster.local import LocalCluster
from tests.nodes import Node

BENCH = Path(__file__).parents[2] / "bench"


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    monkeypatch.syspath_prepend(str(BENCH))
    return runpy.run_path(str(BENCH / "gears.py"))


def clean(ports: Sequence[int]) -> None:
    for port in ports:
        with Redis(port=port) as client:
            for key in client.scan_iter(match="bench:*", count=1_000):
                client.delete(key)


def test_its_figures_of_one_node(bench: dict[str, Any], redis_node: Node) -> None:
    assert all(seconds > 0 for seconds in bench["filtered"](redis_node.port, 300))
    for how in ("def", "async def"):
        plain, answered = bench["missed"](redis_node.port, 20, how)
        assert len(plain) == len(answered) == 20
    assert all(rate > 0 for rate in bench["followed"](redis_node.port, 50, 10))
    clean([redis_node.port])


def test_its_figures_of_a_cluster(bench: dict[str, Any], bare_cluster: LocalCluster) -> None:
    ports = [port for _, port in bare_cluster.addresses]
    assert bench["count"](ports, 500) > 0
    rates, peaks = bench["grouped"](ports, 500)
    assert set(rates) == {"countby", "groupby"}
    assert len(peaks) == 3
    clean(ports)
