"""Runs over three shards: every step, records of every kind, closures that travel, and who may send to a peer."""

import random
import time
from typing import Any

import pytest
from redis import RedisCluster, ResponseError

from shardqa.cluster.local import LocalCluster
from tests.compat.scripts import send_to

WORDS = {"a": 40, "b": 25, "c": 1, "d": 1}


@pytest.fixture(scope="module")
def shards(bare_cluster: LocalCluster) -> RedisCluster:
    client = RedisCluster(host="127.0.0.1", port=bare_cluster.state.port, decode_responses=True, socket_timeout=60)
    for word, count in WORDS.items():
        for n in range(count):
            client.set(f"across:{word}:{n}", n)
    return client


def masters(shards: RedisCluster) -> list[Any]:
    return list(shards.get_primaries())  # type: ignore[no-untyped-call, unused-ignore]


def first(shards: RedisCluster) -> Any:
    return masters(shards)[0]


def run(shards: RedisCluster, code: str, *words: str) -> Any:
    return send_to(shards, first(shards), "RG.PYEXECUTE", code, *words)


def results(shards: RedisCluster, code: str) -> list[Any]:
    found, errors = run(shards, code)
    assert errors == []
    return list(found)


KEYS = "GB('KeysOnlyReader'){steps}.run('across:*')"
WORD = "lambda key: key.split(':')[1]"
NUMBER = "lambda key: int(key.split(':')[2])"


@pytest.mark.parametrize(
    ("steps", "wanted"),
    [
        (".count()", ["67"]),
        (".count().count()", ["1"]),
        (f".map({WORD}).distinct()", ["a", "b", "c", "d"]),
        (f".countby({WORD}).map(lambda r: (r['key'], r['value']))", sorted(str(item) for item in WORDS.items())),
        (f".groupby({WORD}, lambda k, a, r: (a or 0) + 1).map(lambda r: r['value'])", ["1", "1", "25", "40"]),
        (f".batchgroupby({WORD}, lambda k, records: len(records)).map(lambda r: r['value'])", ["1", "1", "25", "40"]),
        (f".aggregateby({WORD}, 0, lambda k, a, r: a + 1, lambda k, a, r: a + r).map(lambda r: r['value'])",
         ["1", "1", "25", "40"]),
        (".aggregate(0, lambda a, r: a + 1, lambda a, r: a + r)", ["67"]),
        (f".map({NUMBER}).avg()", [str(sum(sum(range(n)) for n in WORDS.values()) / 67)]),
        (f".map({NUMBER}).aggregate(-1, max, max)", ["39"]),
        (".collect().limit(5).count()", ["5"]),
        (".collect().limit(5, 65).count()", ["2"]),
        (".repartition(lambda key: 'one').accumulate(lambda a, r: (a or 0) + 1)", ["67"]),
        (".collect().accumulate(lambda a, r: (a or 0) + 1)", ["67"]),
        (".localgroupby(lambda key: 1, lambda k, a, r: (a or 0) + 1).map(lambda r: r['value']).aggregate(0, "
         "lambda a, r: a + r, lambda a, r: a + r)", ["67"]),
    ],
)  # fmt: skip
def test_a_step_gives_what_one_node_would_give(shards: RedisCluster, steps: str, wanted: list[str]) -> None:
    assert sorted(results(shards, KEYS.format(steps=steps))) == wanted


def test_sort_orders_the_records_of_all_shards(shards: RedisCluster) -> None:
    ordered = results(shards, KEYS.format(steps=f".filter(lambda k: ':a:' in k).map({NUMBER}).sort()"))
    assert ordered == [str(n) for n in range(40)]
    ordered = results(shards, KEYS.format(steps=f".filter(lambda k: ':a:' in k).map({NUMBER}).sort(reverse=False)"))
    assert ordered == [str(n) for n in reversed(range(40))]


def test_repartition_puts_records_where_their_key_lives(shards: RedisCluster) -> None:
    code = KEYS.format(
        steps=".map(lambda k: k.replace('across', 'moved')).repartition(lambda k: k)"
        ".foreach(lambda k: execute('SET', k, 'here'))"
    )
    assert len(results(shards, code)) == 67
    assert shards.get("moved:a:3") == "here"


def test_a_run_that_is_not_collected_gives_this_shards_records(shards: RedisCluster) -> None:
    own = results(shards, "GB('KeysOnlyReader').run('across:*', collect=False)")
    assert 0 < len(own) < 67


def test_count_without_collect_still_counts_all_shards(shards: RedisCluster) -> None:
    assert results(shards, "GB('KeysOnlyReader').count().run('across:*', collect=False)") == ["67"]


def test_a_key_that_is_not_there_is_not_counted(shards: RedisCluster) -> None:
    for reader in ("KeysReader", "KeysOnlyReader"):
        for more in ("", ", noScan=True"):
            assert results(shards, f"GB('{reader}').count().run('nosuchkey'{more})") == []
    assert results(shards, "GB('KeysReader').count().run('nosuchkey', readValue=False)") == []
    assert results(shards, "GB('KeysReader').count().run('across:a:1')") == ["1"]


def test_a_part_that_takes_longer_than_five_seconds_is_not_lost(shards: RedisCluster) -> None:
    started = time.monotonic()
    code = "import time\nGB('ShardsIDReader').foreach(lambda x: time.sleep(6)).run()"
    assert len(results(shards, code)) == 3
    assert time.monotonic() - started < 30


RECORDS = """
import collections, decimal, datetime, math
import numpy
Point = collections.namedtuple('Point', 'x y')
class Own:
    def __init__(self, value):
        self.value = value
    def __eq__(self, other):
        return type(other) is Own and other.value == self.value
    def __hash__(self):
        return 7
def values():
    return [2 ** 70, -2 ** 64, numpy.int64(7), numpy.float32(0.5), numpy.arange(3), 'lone \\udc80 \\ud800', math.inf,
            -math.inf, collections.OrderedDict(b=1, a=2), Point(1, 2), (1, [2, (3,)]), {1: 'one', (2,): b'\\xff'},
            b'\\xff',
            None, True, 1.5, {1, 2}, frozenset([3]), 1 + 2j, decimal.Decimal('0.1'), datetime.date(2024, 2, 29), Own(5),
            collections.Counter('aab'), bytearray(b'x'), range(3)]
def same(record):
    shard, number, value = record
    wanted = values()[number]
    equal = numpy.array_equal(value, wanted) if number == 4 else value == wanted
    return 'same' if type(value) is type(wanted) and equal else f'{number}: {wanted!r} became {value!r}'
def nan(record):
    return 'same' if record[1] != record[1] and type(record[1]) is float else repr(record)
"""


def test_every_kind_of_record_reaches_the_initiator_as_it_was(shards: RedisCluster) -> None:
    code = (
        RECORDS
        + """
GB('ShardsIDReader').flatmap(lambda id: [(id, *pair) for pair in enumerate(values())]) \\
  .collect().map(same).distinct().run()
"""
    )
    assert results(shards, code) == ["same"]
    code = RECORDS + "GB('ShardsIDReader').map(lambda id: (id, math.nan)).collect().map(nan).distinct().run()"
    assert results(shards, code) == ["same"]


def test_a_record_that_can_not_travel_is_an_error_and_loses_no_other(shards: RedisCluster) -> None:
    code = """
import threading
GB('ShardsIDReader').flatmap(lambda id: [threading.Lock(), id]).collect().run()
"""
    found, errors = run(shards, code)
    assert len([f for f in found if "lock" not in f]) == 3
    assert len(errors) == 2
    assert all("can't be sent to the other shards" in error for error in errors)


def test_a_variable_of_the_script_has_one_value_on_all_shards(shards: RedisCluster) -> None:
    code = "import random\nx = random.random()\nGB('ShardsIDReader').map(lambda id: x).distinct().run()"
    assert len(results(shards, code)) == 1


def test_a_script_runs_on_the_initiator_alone(shards: RedisCluster) -> None:
    code = "log('the script ran')\nexecute('PING')\nGB('ShardsIDReader').count().run()"
    before = [ran(shards, node) for node in masters(shards)]
    assert results(shards, code) == ["3"]
    after = [ran(shards, node) for node in masters(shards)]
    assert sum(after) - sum(before) == 1


def ran(shards: RedisCluster, node: Any) -> int:
    """PINGs that a node's functions sent."""
    stats = send_to(shards, node, "INFO", "commandstats")
    return int(stats.get("cmdstat_ping", {}).get("calls", 0))


def test_what_can_not_travel_is_refused_with_the_way_out(shards: RedisCluster) -> None:
    code = "import threading\nlock = threading.Lock()\nGB('ShardsIDReader').map(lambda id: lock.locked()).run()"
    with pytest.raises(ResponseError, match=r"can't be sent to the other shards.*mode='async_local'"):
        run(shards, code)


def test_functions_find_their_own_shard_where_they_run(shards: RedisCluster) -> None:
    tags = results(shards, "GB('ShardsIDReader').map(lambda id: hashtag()).run()")
    assert len(set(tags)) == 3
    for tag in tags:
        assert shards.set(f"across-tag:{{{tag}}}", 1)


def test_a_cluster_wide_run_inside_a_function_can_be_awaited(shards: RedisCluster) -> None:
    code = """
async def f(id):
    found, errors = await GB('KeysOnlyReader').count().run(prefix='across:*')
    return found + errors
GB('ShardsIDReader').map(f).run()
"""
    assert results(shards, code) == ["['67']"] * 3


def test_errors_of_all_shards_are_reported(shards: RedisCluster) -> None:
    found, errors = run(shards, "GB('ShardsIDReader').map(lambda id: 1 / 0).run()")
    assert found == []
    assert len(errors) == 3
    assert all("ZeroDivisionError" in error for error in errors)


def test_many_records_are_shuffled_without_losing_one(shards: RedisCluster) -> None:
    code = """
def numbers():
    yield from range(20000)
GB('PythonReader').map(str).countby(lambda x: x).map(lambda r: r['value']).countby(lambda x: str(x)).run(numbers)
"""
    assert results(shards, code) == ["{'key': '3', 'value': 20000}"]


def test_runs_at_once_do_not_mix(shards: RedisCluster) -> None:
    code = """
import asyncio
async def f(id):
    runs = [GB('ShardsIDReader').map(lambda i, n=n: n).collect().run(convertToStr=False) for n in range(30)]
    return [(await run)[0] for run in runs] == [[n] * 3 for n in range(30)]
GB('ShardsIDReader').map(f).run()
"""
    assert results(shards, code) == ["True"] * 3


class TestProof:
    """RG._PEER takes nothing from a client."""

    def peer(self, shards: RedisCluster, *words: str) -> Any:
        return send_to(shards, first(shards), "RG._PEER", *words)

    def test_a_client_that_names_no_node_is_refused(self, shards: RedisCluster) -> None:
        for token in ("", "x", "0" * 64):
            with pytest.raises(ResponseError, match=r"for the nodes of this cluster|no other node"):
                self.peer(shards, "f" * 40, token, "RUN", "x")

    def test_a_client_that_names_another_node_is_denied_by_that_node(self, shards: RedisCluster) -> None:
        other = send_to(shards, masters(shards)[1], "CLUSTER", "MYID")
        token = f"{random.getrandbits(256):064x}"
        assert results(shards, "GB('ShardsIDReader').count().run()") == ["3"]
        with pytest.raises(ResponseError, match="did not send this"):
            self.peer(shards, other, token, "RUN", "x", "3.11", "s", "default", "0", "[]", "")

    def test_a_client_that_names_the_node_itself_is_refused(self, shards: RedisCluster) -> None:
        own = send_to(shards, first(shards), "CLUSTER", "MYID")
        with pytest.raises(ResponseError, match="no other node"):
            self.peer(shards, own, "0" * 64, "ALIVE", "x")

    def test_a_guessed_token_is_not_vouched_for(self, shards: RedisCluster) -> None:
        other = send_to(shards, masters(shards)[1], "CLUSTER", "MYID")
        assert self.peer(shards, other, "", "VOUCH", "0" * 64) == 0
        assert self.peer(shards, other, "", "VOUCH") == 0
        assert self.peer(shards, "nobody", "", "VOUCH", "0" * 64) == 0

    def test_tokens_are_kept_out_of_monitor_and_the_slow_log(self, shards: RedisCluster) -> None:
        node = first(shards)
        flags = send_to(shards, node, "COMMAND", "INFO", "RG._PEER")
        words = str(flags)
        assert "skip_monitor" in words
        assert "skip_slowlog" in words


def test_names_that_a_script_imports_are_each_shards_own(shards: RedisCluster) -> None:
    code = "from shardqa.gears import GB, execute\nimport shardqa.gears as gears\n"
    steps = ".map(lambda r: (execute('ECHO', 'x'), gears_tag()[:0])).count()"
    found = results(shards, code + "gears_tag = gears.hashtag\n" + KEYS.format(steps=steps))
    assert found == ["67"]
