"""/metrics tells how large each corpus is, how much of it has vectors, and what functions did on each shard."""

import httpx

from shardqa.api.metrics import exposition
from shardqa.api.shard_metrics import MAX_CORPORA, of_corpora, of_registrations
from shardqa.cluster.local import LocalCluster
from shardqa.engine.activity import registrations_of
from shardqa.schema import CorpusInfo
from tests.nodes import wait_until

INFO = (
    "shardqa_registration_1:name=Rank,triggered=7,succeeded=4,failed=1,aborted=2,queue=3,p50_us=9,p99_us=9,"
    "sum_us=1500000,le_1ms=2,le_500ms=4\n"
)


def corpus(name: str, passages: int, encoded: int | None = None) -> CorpusInfo:
    return CorpusInfo(name=name, documents=1, passages=passages, characters=9, bytes=10, epoch="e", encoded=encoded)


def test_each_corpus_has_its_sizes_and_vectors_where_there_is_an_encoder() -> None:
    text = exposition(of_corpora([corpus("news", 12, encoded=5)])).decode()
    for name, size in (("documents", "1.0"), ("passages", "12.0"), ("bytes", "10.0"), ("encoded", "5.0")):
        assert f'shardqa_corpus_{name}{{corpus="news"}} {size}' in text
    assert "shardqa_corpus_encoded{" not in exposition(of_corpora([corpus("news", 12)])).decode()


def test_the_largest_corpora_alone_have_series() -> None:
    text = exposition(of_corpora([corpus(f"c{number}", number) for number in range(1, MAX_CORPORA + 3)])).decode()
    assert 'shardqa_corpus_passages{corpus="c3"}' in text
    assert 'shardqa_corpus_passages{corpus="c2"}' not in text


def test_a_line_of_info_becomes_metrics_of_its_registration_and_node() -> None:
    text = exposition(of_registrations(registrations_of("a:1", INFO))).decode()
    place = 'node="a:1",registration="Rank"'
    for line in (
        f"shardqa_registration_triggered_total{{{place}}} 7.0",
        'shardqa_registration_runs_total{node="a:1",outcome="aborted",registration="Rank"} 2.0',
        f"shardqa_registration_queue{{{place}}} 3.0",
        f'shardqa_registration_run_seconds_bucket{{le="0.001",{place}}} 2.0',
        f'shardqa_registration_run_seconds_bucket{{le="+Inf",{place}}} 5.0',
        f"shardqa_registration_run_seconds_sum{{{place}}} 1.5",
    ):
        assert line in text, text


def test_registrations_of_one_name_on_a_node_count_together() -> None:
    counts = [counts for node in ("a:1", "a:1", "b:1") for counts in registrations_of(node, INFO)]
    text = exposition(of_registrations(counts)).decode()
    assert 'shardqa_registration_triggered_total{node="a:1",registration="Rank"} 14.0' in text
    assert 'shardqa_registration_triggered_total{node="b:1",registration="Rank"} 7.0' in text


def test_a_scrape_has_the_corpora_and_functions_of_every_shard(http: httpx.Client, cluster: LocalCluster) -> None:
    sent = [{"id": "one", "text": "The mill of Ulmen grinds rye.", "title": "Ulmen"}]
    assert http.post("/v1/documents", params={"corpus": "scraped"}, json=sent).json()["taken"] == 1
    series = [f'shardqa_registration_triggered_total{{node="{host}:{port}",registration="Corpora"}}'
              for host, port in cluster.addresses]  # fmt: skip
    series += [f'shardqa_worker_ready{{node="{host}:{port}"}} 1.0' for host, port in cluster.addresses]
    series += ["shardqa_build_info{", "shardqa_http_requests_total", 'shardqa_corpus_documents{corpus="scraped"} 1.0']

    def is_complete() -> bool:
        text = http.get("/metrics").text
        return all(line in text for line in series)

    wait_until(is_complete, "each shard sends its numbers, once a second")
