"""Functions without Redis: the worker's own pipeline over given records or keys."""

from pathlib import Path
from typing import Any

import pytest
from redis import ResponseError

from shardqa.gears import GB, atomic, execute, local, log
from tests.nodes import Node

LINES = {"line:1": "to be or not to be", "line:2": "be", "other": "word"}
SCRIPTS = Path(__file__).parents[4] / "docs" / "examples"


def words(record: dict[str, Any]) -> list[str]:
    return str(record["value"]).split()


@pytest.mark.parametrize(
    ("builder", "expected"),
    [
        (lambda: GB().map(lambda n: n + 1), [4, 2, 3]),
        (lambda: GB().filter(lambda n: n > 1).flatmap(lambda n: [n] * n), [3, 3, 3, 2, 2]),
        (lambda: GB().count(), [3]),
        (lambda: GB().sort(), [1, 2, 3]),
        (lambda: GB().avg(), [2.0]),
        (lambda: GB().limit(1, 1), [1]),
        (lambda: GB().map(lambda n: n % 2).distinct(), [1, 0]),
        (lambda: GB().accumulate(lambda a, n: (a or 0) + n), [6]),
        (lambda: GB().aggregate(10, lambda a, n: a + n, lambda a, n: a + n), [26]),
        (
            lambda: GB().repartition(str).groupby(lambda n: n % 2, lambda k, a, n: (a or 0) + n),
            pairs := {"1": 4, "0": 2},
        ),
        (lambda: GB().batchgroupby(lambda n: n % 2, lambda k, all: sum(all)), pairs),
        (lambda: GB().countby(lambda n: n % 2), {"1": 2, "0": 1}),
    ],
)
def test_each_step_does_to_given_records_what_it_does_on_a_shard(builder: Any, expected: Any) -> None:
    results, errors = local.run(builder(), [3, 1, 2])
    found = {r["key"]: r["value"] for r in results} if isinstance(expected, dict) else results
    assert (found, errors) == (expected, [])


def test_a_reader_of_keys_reads_the_keys_that_are_given() -> None:
    results, _ = local.run(GB(defaultArg="line:*").flatmap(words).countby(), keys=LINES)
    assert {r["key"]: r["value"] for r in results} == {"to": 2, "be": 3, "or": 1, "not": 1}


def test_values_are_read_as_the_worker_reads_them() -> None:
    keys = {"h": {"a": 1}, "l": ["x", "y"], "s": {"m"}, "t": "text"}
    results, _ = local.run(GB().map(lambda r: (r["key"], r["type"], r["value"])), keys=keys)
    assert sorted(results) == [
        ("h", "hash", {"a": "1"}),
        ("l", "list", ["x", "y"]),
        ("s", "set", None),
        ("t", "string", "text"),
    ]


def test_a_stream_is_read_message_by_message() -> None:
    results, _ = local.run(GB("StreamReader", "in").map(lambda r: r["value"]), keys={"in": [{"n": 1}, {"n": 2}]})
    assert results == [{"n": "1"}, {"n": "2"}]


def test_commands_of_functions_act_on_the_keys() -> None:
    def move(record: dict[str, Any]) -> None:
        with atomic():
            execute("HSET", "moved", record["key"], record["value"])
            execute("DEL", record["key"])

    shard = local.LocalShard(LINES)
    assert shard.run(GB(defaultArg="line:*").foreach(move)).errors == []
    assert shard.keys == {"other": "word", "moved": {"line:1": "to be or not to be", "line:2": "be"}}


def test_replies_can_be_given_by_command() -> None:
    replies = {"TIME": ["17", "0"], "ZSCORE": lambda key, member: f"{key}/{member}"}
    results, _ = local.run(GB().map(lambda c: execute(*c)), [["TIME"], ["zscore", "z", "m"]], replies=replies)
    assert results == [["17", "0"], "z/m"]


def test_a_command_that_the_keys_do_not_know_says_what_to_do() -> None:
    _, errors = local.run(GB().map(lambda _: execute("AI.MODELGET", "m")), [1])
    assert "replies={'AI.MODELGET': ...}" in errors[0]


def test_keys_hold_what_is_given_and_nothing_else() -> None:
    keys = {"h": {"a": "1"}, "l": ["x", "y"], "s": {"m"}, "t": "text", "in": [{"n": "1"}], "b": b"\xff", "none": []}
    assert local.LocalShard(keys).keys == {name: value for name, value in keys.items() if name != "none"}
    assert local.LocalShard().keys == {}
    with pytest.raises(TypeError, match="a key can't hold object"):
        local.LocalShard({"o": object()})


def test_a_client_of_redis_answers_in_place_of_the_keys(redis_node: Node) -> None:
    with redis_node.client() as client:
        client.zadd("local:z", {"m": 2.5})
        client.hset("local:h", "a", "1")
        shard = local.LocalShard(redis=client)
        assert shard.run(GB().map(lambda _: execute("ZSCORE", "local:z", "m")), [1]).results == ["2.5"]
        assert shard.run(GB().map(lambda r: r["value"]).collect(), None).errors == []
        assert shard.run(GB(defaultArg="local:h").map(lambda r: r["value"])).results == [{"a": "1"}]


def test_a_step_that_fails_is_an_error_and_loses_its_record() -> None:
    results, errors = local.run(GB().map(lambda n: 1 // n), [0, 1])
    assert results == [1]
    assert "ZeroDivisionError" in errors[0]


def test_coroutines_and_logs_work() -> None:
    async def twice(n: int) -> int:
        log(f"got {n}")
        return 2 * n

    shard = local.LocalShard()
    assert shard.run(GB().map(twice), [1, 2]).results == [2, 4]
    assert shard.logged == ["got 1", "got 2"]


def test_a_script_runs_as_it_is_with_and_without_the_import() -> None:
    code = "GB().map(lambda r: hashtag()).run('line:*')\n"
    assert local.run(code, keys=LINES) == local.run("from shardqa.gears import *\n" + code, keys=LINES)
    assert local.run("from shardqa.gears import GB\n" + code, keys=LINES).results == ["06S", "06S"]


def test_a_script_is_read_from_its_file(tmp_path: Path) -> None:
    script = tmp_path / "count.py"
    script.write_text("GB().count().run('line:*')\n")
    assert local.run(script, keys=LINES).results == [2]
    assert local.run(str(script), keys=LINES, convert=True).results == ["2"]


def test_what_a_script_registers_takes_records_triggers_and_events() -> None:
    shard = local.LocalShard(LINES)
    shard.run("GB('CommandReader').map(lambda r: r[1] * 2).register(trigger='double')\n")
    shard.run(
        "GB().map(lambda r: (r['event'], r['value'])).register('line:*', eventTypes=['set'], convertToStr=False)\n"
    )
    assert shard.trigger("double", "ab") == ["abab"]
    assert [found.results for found in shard.event("set", "line:2")] == [[("set", "be")]]
    assert shard.event("set", "other") == shard.event("del", "line:2") == []
    with pytest.raises(ResponseError, match="subcommand not found"):
        shard.trigger("nobody")


def test_records_reach_the_one_function_that_a_script_registers() -> None:
    code = "GB('StreamReader').map(lambda r: r['value']['n']).register('in:*')\n"
    assert local.run(code, [{"key": "in:1", "id": "1-0", "value": {"n": "5"}}]).results == ["5"]
    with pytest.raises(ValueError, match="runs or registers once"):
        local.run("x = 1\n", [1])


def test_outside_a_run_the_names_say_where_they_work() -> None:
    with pytest.raises(RuntimeError, match=r"shardqa gears run script\.py"):
        execute("GET", "x")
    with pytest.raises(RuntimeError, match="only collects steps"):
        GB().run()
