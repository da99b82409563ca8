"""Runs over three shards: every step, records of every kind, closures that travel, and who may send to a peer."""

import random
from typing import Any

import pytest
from redis import Redis, ResponseError
from redis.crc import key_slot

from tests.compat.scripts import send

WORDS = {"a": 40, "b": 25, "c": 1, "d": 1}
KEYS = "GB('KeysOnlyReader'){steps}.run('across:*')"
EVERYWHERE = "GB('ShardsIDReader'){steps}.run({arguments})"
WORD = "lambda key: key.split(':')[1]"
NUMBER = "lambda key: int(key.split(':')[2])"


@pytest.fixture(autouse=True, scope="module")
def keys(cluster_client: Any) -> None:
    for word, count in WORDS.items():
        for n in range(count):
            cluster_client.set(f"across:{word}:{n}", n)


def run(shard: Redis, code: str) -> Any:
    return send(shard, "RG.PYEXECUTE", code)


def results(shards: list[Redis], code: str) -> list[Any]:
    replies, errors = run(shards[0], code)
    assert errors == []
    return list(replies)


def everywhere(steps: str, arguments: str = "") -> str:
    return EVERYWHERE.format(steps=steps, arguments=arguments)


@pytest.mark.parametrize(
    ("steps", "expected"),
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
def test_a_step_gives_what_one_node_would_give(shards: list[Redis], steps: str, expected: list[str]) -> None:
    assert sorted(results(shards, KEYS.format(steps=steps))) == expected


@pytest.mark.parametrize(("arguments", "order"), [("", range(40)), ("reverse=False", reversed(range(40)))])
def test_sort_orders_the_records_of_all_shards(shards: list[Redis], arguments: str, order: Any) -> None:
    steps = f".filter(lambda k: ':a:' in k).map({NUMBER}).sort({arguments})"
    assert results(shards, KEYS.format(steps=steps)) == [str(n) for n in order]


def test_repartition_puts_records_where_their_key_lives(shards: list[Redis], cluster_client: Any) -> None:
    steps = ".map(lambda k: k.replace('across', 'moved')).repartition(lambda k: k)"
    assert len(results(shards, KEYS.format(steps=steps + ".foreach(lambda k: execute('SET', k, 'here'))"))) == 67
    assert cluster_client.get("moved:a:3") == "here"


def test_what_is_not_collected_stays_on_the_shard_and_is_counted_all_the_same(shards: list[Redis]) -> None:
    assert 0 < len(results(shards, "GB('KeysOnlyReader').run('across:*', collect=False)")) < 67
    assert results(shards, "GB('KeysOnlyReader').count().run('across:*', collect=False)") == ["67"]
    assert len(results(shards, everywhere("", "mode='async_local'"))) == 1


def test_a_key_that_is_not_there_is_not_counted(shards: list[Redis]) -> None:
    for reader, more in (("KeysReader", ""), ("KeysOnlyReader", ""), ("KeysOnlyReader", ", noScan=True")):
        assert results(shards, f"GB('{reader}').count().run('nosuchkey'{more})") == []
    assert results(shards, "GB('KeysReader').count().run('nosuchkey', readValue=False)") == []
    assert results(shards, "GB('KeysReader').count().run('across:a:1')") == ["1"]


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


@pytest.mark.parametrize(
    "steps",
    [
        ".flatmap(lambda id: [(id, *pair) for pair in enumerate(values())]).collect().map(same).distinct()",
        ".map(lambda id: (id, math.nan)).collect().map(nan).distinct()",
    ],
)
def test_every_kind_of_record_reaches_the_initiator_as_it_was(shards: list[Redis], steps: str) -> None:
    assert results(shards, RECORDS + everywhere(steps)) == ["same"]


def test_a_record_that_can_not_travel_is_an_error_and_loses_no_other(shards: list[Redis]) -> None:
    replies, errors = run(
        shards[0], "import threading\n" + everywhere(".flatmap(lambda id: [threading.Lock(), id]).collect()")
    )
    assert len([reply for reply in replies if "lock" not in reply]) == 3
    assert len(errors) == 2
    assert all("can't be sent to the other shards" in error for error in errors)


@pytest.mark.parametrize("raised", ["SystemExit", "KeyboardInterrupt", "GeneratorExit", "asyncio.CancelledError"])
@pytest.mark.parametrize("method", ["__reduce__", "__setstate__"])
def test_a_record_that_raises_what_ends_a_task_as_it_travels_is_an_error(
    shards: list[Redis], raised: str, method: str
) -> None:
    record = f"""
import asyncio
class Odd:
    def __getstate__(self): return 1
    def {method}(self, *state): raise {raised}
"""
    _, errors = run(shards[0], record + everywhere(".map(lambda id: Odd()).collect()"))
    assert errors
    assert all(raised.rpartition(".")[2] in error for error in errors)
    assert len(results(shards, everywhere(""))) == 3


def test_a_variable_of_the_script_has_one_value_on_all_shards(shards: list[Redis]) -> None:
    code = "import random\nx = random.random()\n" + everywhere(".map(lambda id: x).distinct()")
    assert len(results(shards, code)) == 1


def test_a_script_runs_on_the_initiator_alone(shards: list[Redis]) -> None:
    before = sum(map(pings, shards))
    assert results(shards, "execute('PING')\n" + everywhere(".count()")) == ["3"]
    assert sum(map(pings, shards)) - before == 1


def pings(shard: Redis) -> int:
    """PINGs that the node's functions sent."""
    return int(shard.info("commandstats").get("cmdstat_ping", {}).get("calls", 0))


def test_what_can_not_travel_is_refused_with_the_way_out(shards: list[Redis]) -> None:
    code = "import threading\nlock = threading.Lock()\n" + everywhere(".map(lambda id: lock.locked())")
    with pytest.raises(ResponseError, match=r"can't be sent to the other shards.*mode='async_local'"):
        run(shards[0], code)


def test_each_shard_has_its_id_and_a_tag_of_a_slot_that_it_owns(shards: list[Redis], cluster_client: Any) -> None:
    assert len(set(results(shards, everywhere("")))) == 3
    code = everywhere(".map(lambda id: hashtag())", "mode='async_local'")
    tags = [run(shard, code)[0][0] for shard in shards]
    owners = [cluster_client.nodes_manager.get_node_from_slot(key_slot(tag.encode())).redis_connection for tag in tags]
    assert owners == shards
    assert sorted(results(shards, everywhere(".map(lambda id: hashtag())"))) == sorted(tags)


def test_a_write_to_a_slot_of_another_shard_is_an_error(shards: list[Redis], cluster_client: Any) -> None:
    owner = cluster_client.nodes_manager.get_node_from_slot(key_slot(b"cluster-a")).redis_connection
    other = next(shard for shard in shards if shard is not owner)
    replies, errors = run(other, everywhere(".map(lambda x: execute('SET', '{cluster-a}', 1))", "mode='async_local'"))
    assert replies == []
    assert errors[0].split(" ", 1)[0] in ("TRYAGAIN", "MOVED", "ERR")


@pytest.mark.parametrize("word", ["SLOTS", "SHARDS"])
def test_a_function_is_told_of_the_slots_unless_that_would_crash_the_server(shards: list[Redis], word: str) -> None:
    version = shards[0].info("server").get("valkey_version")
    steps = f".map(lambda x: len(execute('CLUSTER', '{word}')))"
    replies, errors = run(shards[0], everywhere(steps, "mode='async_local'"))
    if version is not None and tuple(map(int, version.split("."))) < (9, 0, 1):
        assert "upgrade Valkey" in errors[0]
    else:
        assert (replies, errors) == (["3"], [])
    assert shards[0].ping()


def test_peers_are_the_other_masters(shards: list[Redis]) -> None:
    code = """
async def f(r):
    return [bytes(reply).decode() for reply in await runtime.peers('CLUSTER', 'MYID')]
GB('CommandReader').map(f).register(trigger='cluster-peers', mode='async_local', convertToStr=False)
"""
    assert send(shards[0], "RG.PYEXECUTE", code, "ID", "cluster-peers", "UPGRADE") == "OK"
    ids = {send(shard, "CLUSTER", "MYID") for shard in shards}
    for shard in shards:
        (peers,) = send(shard, "RG.TRIGGER", "cluster-peers")
        assert sorted(peers) == sorted(ids - {send(shard, "CLUSTER", "MYID")})


def test_a_cluster_wide_run_inside_a_function_can_be_awaited(shards: list[Redis]) -> None:
    code = """
async def f(id):
    results, errors = await GB('KeysOnlyReader').count().run(prefix='across:*')
    return results + errors
"""
    assert results(shards, code + everywhere(".map(f)")) == ["['67']"] * 3


def test_errors_of_all_shards_are_reported(shards: list[Redis]) -> None:
    replies, errors = run(shards[0], everywhere(".map(lambda id: 1 / 0)"))
    assert (replies, len(errors)) == ([], 3)
    assert all("ZeroDivisionError" in error for error in errors)


def test_many_records_are_shuffled_without_losing_one(shards: list[Redis]) -> None:
    code = """
def numbers():
    yield from range(20000)
GB('PythonReader').map(str).countby(lambda x: x).map(lambda r: r['value']).countby(lambda x: str(x)).run(numbers)
"""
    assert results(shards, code) == ["{'key': '3', 'value': 20000}"]


def test_runs_at_once_do_not_mix(shards: list[Redis]) -> None:
    code = """
async def f(id):
    runs = [GB('ShardsIDReader').map(lambda i, n=n: n).collect().run(convertToStr=False) for n in range(30)]
    return [(await run)[0] for run in runs] == [[n] * 3 for n in range(30)]
"""
    assert results(shards, code + everywhere(".map(f)")) == ["True"] * 3


def test_names_that_a_script_imports_are_each_shards_own(shards: list[Redis]) -> None:
    code = "from shardqa.gears import GB, execute\nimport shardqa.gears as gears\ngears_tag = gears.hashtag\n"
    steps = ".map(lambda r: (execute('ECHO', 'x'), gears_tag()[:0])).count()"
    assert results(shards, code + KEYS.format(steps=steps)) == ["67"]


# ---- RG._PEER takes nothing from a client


@pytest.mark.parametrize("token", ["", "x", "0" * 64])
def test_a_client_that_names_no_node_is_refused(shards: list[Redis], token: str) -> None:
    with pytest.raises(ResponseError, match=r"for the nodes of this cluster|no other node"):
        send(shards[0], "RG._PEER", "f" * 40, token, "RUN", "x")


def test_a_client_that_names_another_node_or_the_node_itself_is_refused(shards: list[Redis]) -> None:
    own, other = (send(shard, "CLUSTER", "MYID") for shard in shards[:2])
    token = f"{random.getrandbits(256):064x}"
    assert results(shards, everywhere(".count()")) == ["3"]
    with pytest.raises(ResponseError, match="did not send this"):
        send(shards[0], "RG._PEER", other, token, "RUN", "x", "3.11", "s", "default", "0", "[]", "")
    with pytest.raises(ResponseError, match="no other node"):
        send(shards[0], "RG._PEER", own, "0" * 64, "ALIVE", "x")


def test_a_guessed_token_is_not_vouched_for(shards: list[Redis]) -> None:
    other = send(shards[1], "CLUSTER", "MYID")
    for words in ((other, "", "VOUCH", "0" * 64), (other, "", "VOUCH"), ("nobody", "", "VOUCH", "0" * 64)):
        assert send(shards[0], "RG._PEER", *words) == 0


def test_tokens_are_kept_out_of_monitor_and_the_slow_log(shards: list[Redis]) -> None:
    flags = str(send(shards[0], "COMMAND", "INFO", "RG._PEER"))
    assert "skip_monitor" in flags
    assert "skip_slowlog" in flags
