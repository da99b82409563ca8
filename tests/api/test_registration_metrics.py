"""/metrics tells what functions have done on each shard."""

import httpx

from shardqa.api.registration_metrics import text
from shardqa.cluster.local import LocalCluster
from shardqa.engine.registrations import counts_of
from tests.nodes import wait_until

LINE = (
    "name=Rank,triggered=7,succeeded=4,failed=1,aborted=2,queue=3,p50_us=9,p99_us=9,sum_us=1500000,le_1ms=2,le_500ms=4"
)


def test_a_line_of_info_becomes_metrics_of_its_registration_and_node() -> None:
    told = text([counts_of("a:1", LINE)]).decode()
    place = 'node="a:1",registration="Rank"'
    for line in (
        f"shardqa_registration_triggered_total{{{place}}} 7.0",
        'shardqa_registration_runs_total{node="a:1",outcome="aborted",registration="Rank"} 2.0',
        f"shardqa_registration_queue{{{place}}} 3.0",
        f'shardqa_registration_run_seconds_bucket{{le="0.001",{place}}} 2.0',
        f'shardqa_registration_run_seconds_bucket{{le="+Inf",{place}}} 5.0',
        f"shardqa_registration_run_seconds_sum{{{place}}} 1.5",
    ):
        assert line in told, told


def test_registrations_of_one_name_on_a_node_count_together() -> None:
    told = text([counts_of("a:1", LINE), counts_of("a:1", LINE), counts_of("b:1", LINE)]).decode()
    assert 'shardqa_registration_triggered_total{node="a:1",registration="Rank"} 14.0' in told
    assert 'shardqa_registration_triggered_total{node="b:1",registration="Rank"} 7.0' in told


def test_every_shard_tells_of_its_functions(http: httpx.Client, cluster: LocalCluster) -> None:
    def shown() -> bool:
        told = http.get("/metrics").text
        nodes = [f'shardqa_registration_triggered_total{{node="{host}:{port}",registration="Corpora"}}'
                 for host, port in cluster.addresses]  # fmt: skip
        return "shardqa_http_requests_total" in told and all(line in told for line in nodes)

    wait_until(shown, "each shard has told its numbers, once a second")
