"""What INFO tells of models, read for /metrics."""

from shardqa.api import model_metrics
from shardqa.engine.model_runs import MOST, KeptStates, read, read_states

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
    (runs,) = read("here:1", INFO.encode())
    assert read("here:1", {"shardqa_models": 2, "shardqa_model_m_{a}": parsed}) == [runs]
    assert (runs.node, runs.model) == ("here:1", "m_{a}")
    assert (runs.requests, runs.errors, runs.runs, runs.rows, runs.most_rows) == (4, 1, 2, 5, 3)
    assert (runs.waited[-1], runs.took[1]) == (3, 2)


def test_of_very_many_models_only_some_are_told() -> None:
    many = "".join(f"shardqa_model_m{number:04}:{LINE}\n" for number in range(MOST + 20))
    assert [runs.model for runs in read("here:1", many)][-1] == f"m{MOST - 1:04}"


def test_models_become_counters_and_cumulative_histograms() -> None:
    lines = model_metrics.text(read("here:1", INFO)).decode().splitlines()
    labels = '{model="m_{a}",node="here:1"}'
    for name, value in (("requests_total", 4), ("errors_total", 1), ("runs_total", 2), ("rows_total", 5)):
        assert f"shardqa_model_{name}{labels} {value}.0" in lines, lines
    assert f"shardqa_model_largest_batch{labels} 3.0" in lines
    waited = [line.rpartition(" ")[2] for line in lines if line.startswith("shardqa_model_queue_seconds_bucket")]
    assert waited == ["1.0"] * 7 + ["4.0"]
    assert any('le="0.003"' in line and line.endswith(" 2.0") for line in lines if "run_seconds_bucket" in line)


def test_where_no_model_has_run_nothing_is_told() -> None:
    assert model_metrics.text([]) == b""
    assert read("here:1", "shardqa_models:0\r\n") == []


STATES = "shardqa_states_kept:3\nshardqa_states_bytes:900\nshardqa_states_limit:1000\nshardqa_states_hits:8\n"
STATES += "shardqa_states_encoded:6\nshardqa_states_to_do:4\n"
STATES += "shardqa_states_misses:5\nshardqa_states_evictions:2\nshardqa_states_of_a_later_version:7\n"


def test_kept_states_become_counters_and_gauges() -> None:
    (states,) = read_states("here:1", INFO + STATES)
    parsed = dict(line.split(":") for line in STATES.splitlines())
    assert read_states("here:1", {name: int(number) for name, number in parsed.items()}) == [states]
    assert states == KeptStates(
        "here:1", kept=3, bytes=900, limit=1000, hits=8, misses=5, evictions=2, encoded=6, to_do=4
    )
    lines = model_metrics.text([], [states]).decode().splitlines()
    for line in ("hits_total{} 8.0", "misses_total{} 5.0", "evictions_total{} 2.0", "kept{} 3.0", "to_do{} 4.0"):
        assert "shardqa_states_" + line.replace("{}", '{node="here:1"}') in lines


def test_where_no_split_reader_has_run_nothing_is_told_of_states() -> None:
    assert read_states("here:1", INFO) == []
    assert b"states" not in model_metrics.text(read("here:1", INFO))
