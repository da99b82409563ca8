"""Readers of runs, with all their arguments."""

from typing import Any

from redis import Redis

from tests.compat.scripts import send


def results(client: Redis, code: str) -> list[Any]:
    replies, errors = send(client, "RG.PYEXECUTE", code)
    assert errors == []
    return sorted(replies)


def test_a_keys_reader_that_reads_no_values_gives_key_and_event_alone(client: Redis) -> None:
    client.set("reader:1", "v")
    assert results(client, "GB().run('reader:*', readValue=False)") == ["{'key': 'reader:1', 'event': None}"]


def test_noscan_takes_the_pattern_for_a_name(client: Redis) -> None:
    client.set("reader-star:*", "v")
    client.set("reader-star:1", "v")
    for reader in ("KeysReader", "KeysOnlyReader"):
        code = f"GB('{reader}').count().run('reader-star:*', noScan=%s)"
        assert results(client, code % True) == ["1"]
        assert results(client, code % False) == ["2"]


def test_a_pattern_generator_names_the_keys_of_a_shard(client: Redis) -> None:
    client.set("generated:1", "v")
    client.set("generated:2", "v")
    code = "GB('KeysOnlyReader').run(count=10, patternGenerator=lambda: ('generated:%s', %s))"
    assert results(client, code % ("*", False)) == ["generated:1", "generated:2"]
    assert results(client, code % ("1", True)) == ["generated:1"]


def test_a_list_is_spread_from_its_end_and_groups_are_named_by_text(client: Redis) -> None:
    client.rpush("spread:l", 5, 4, 3, 2, 1)
    code = "GB().flatmap(lambda r: r['value']).%s.run('spread:l')"
    assert results(client, code % "limit(1, 3)") == ["4"]
    assert results(client, code % "distinct().limit(1)") == ["1"]
    groups = results(client, code % "__localAggregateby__(lambda n: int(n) % 2, 0, lambda k, a, r: a + 1)")
    assert groups == ["{'key': '0', 'value': 2}", "{'key': '1', 'value': 3}"]


def test_a_stream_reader_reads_every_message_once(client: Redis) -> None:
    for n in range(1, 1201):
        client.xadd("read-stream:1", {"n": n}, id=f"{n}-0")
    client.xadd("read-stream:2", {"n": "x"}, id="7-0")
    client.set("read-stream:no", "v")
    code = "GB('StreamReader').%s.run(%s)"
    assert results(client, code % ("count()", "'read-stream:1'")) == ["1200"]
    assert results(client, code % ("count()", "'read-stream:*'")) == ["1201"]
    assert results(client, code % ("count()", "'read-stream:1', fromId='1190-0'")) == ["10"]
    assert results(client, code % ("map(lambda r: r)", "'read-stream:2'")) == [
        "{'key': 'read-stream:2', 'id': '7-0', 'value': {'n': 'x'}}"
    ]


def test_other_readers_give_nothing_and_as_much_as_there_is(client: Redis) -> None:
    for code, expected in (
        ("GB('StreamReader').run('no-stream-here')", []),
        ("GB('PythonReader').count().run(lambda: iter(range(0)))", []),
        ("GB('PythonReader').count().run(lambda: iter(range(1501)))", ["1501"]),
        ("GB('ShardsIDReader').run()", ["1"]),  # outside a cluster
        ("GB('PythonReader', shardReaderCallback).run()", ["1"]),
    ):
        assert results(client, code) == expected
    for option, why in ("count='x'", "value is not an integer"), ("patternGenerator='x'", "object is not callable"):
        (_, (error,)) = client.execute_command("RG.PYEXECUTE", f"GB('KeysOnlyReader').run({option})")
        assert why in error
