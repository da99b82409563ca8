"""INFO of models, read for /metrics."""

from shardqa.api.metrics import exposition
from shardqa.api.shard_metrics import of_models
from shardqa.engine.activity import MAX_MODELS, WorkerState, models_of, worker_of

LINE = "requests=4,errors=1,runs=2,rows=5,mean_batch=2.50,max_batch=3,queue_us=1/0/0/0/0/0/0/3,run_us=0/2/0/0/0/0/0/0"
INFO = f"""# shardqa_content
shardqa_models:2
shardqa_model_bytes:123
# shardqa_worker
shardqa_model_run_us_p50:77
shardqa_model_m_{{a}}:{LINE}
"""


def test_a_line_of_info_is_read_whether_redis_py_has_parsed_it_or_not() -> None:
    parsed = dict(pair.split("=") for pair in LINE.split(","))
    (runs,) = models_of("here:1", INFO.encode())
    assert models_of("here:1", {"shardqa_models": 2, "shardqa_model_m_{a}": parsed}) == [runs]
    assert (runs.node, runs.model) == ("here:1", "m_{a}")
    assert (runs.requests, runs.errors, runs.runs, runs.rows, runs.most_rows) == (4, 1, 2, 5, 3)
    assert (runs.waited[-1], runs.took[1]) == (3, 2)


def test_of_very_many_models_only_some_are_told() -> None:
    many = "".join(f"shardqa_model_m{number:04}:{LINE}\n" for number in range(MAX_MODELS + 20))
    assert [runs.model for runs in models_of("here:1", many)][-1] == f"m{MAX_MODELS - 1:04}"


def test_models_become_counters_and_cumulative_histograms() -> None:
    lines = exposition(of_models(models_of("here:1", INFO))).decode().splitlines()
    labels = '{model="m_{a}",node="here:1"}'
    for name, value in (("requests_total", 4), ("errors_total", 1), ("runs_total", 2), ("rows_total", 5)):
        assert f"shardqa_model_{name}{labels} {value}.0" in lines, lines
    assert f"shardqa_model_largest_batch{labels} 3.0" in lines
    waited = [line.rpartition(" ")[2] for line in lines if line.startswith("shardqa_model_queue_seconds_bucket")]
    assert waited == ["1.0"] * 7 + ["4.0"]
    assert any('le="0.003"' in line and line.endswith(" 2.0") for line in lines if "run_seconds_bucket" in line)


def test_where_no_model_has_run_nothing_is_told() -> None:
    assert exposition(of_models([])) == b""
    assert models_of("here:1", "shardqa_models:0\r\n") == []


def test_the_worker_of_a_node_is_told_and_none_of_a_node_that_says_nothing() -> None:
    info = (
        "shardqa_worker_state:starting\nshardqa_worker_restarts:2\nshardqa_pending_requests:3\nshardqa_pending_misses:4"
    )
    assert worker_of("a:1", info) == [WorkerState("a:1", is_ready=False, restarts=2, commands=3, misses=4)]
    assert worker_of("a:1", "") == []
