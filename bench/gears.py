"""RedisGears' functions: counts, filters, groups, misses and events, each against the plainest way to do the same.

    python bench/gears.py

Sizes come from GEARS_KEYS, GEARS_HASHES, GEARS_RECORDS, GEARS_GETS and GEARS_HSETS. What is compared runs in turns in
one process; a figure is the median of the turns. Absolute numbers only describe the machine.
"""

import os
import socket
import time
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from statistics import median
from typing import Any, TypeVar

from common import percentiles, seconds_of, temporary_cluster, worker_pid
from redis import Redis
from redis.crc import key_slot

from shardqa import machine, topology

T = TypeVar("T")
KEYS = int(os.environ.get("GEARS_KEYS", "1000000"))
HASHES = int(os.environ.get("GEARS_HASHES", "200000"))
RECORDS = int(os.environ.get("GEARS_RECORDS", "1000000"))
GETS = int(os.environ.get("GEARS_GETS", "5000"))
HSETS = int(os.environ.get("GEARS_HSETS", "20000"))
TURNS = 5
CHUNK = 10_000  # commands written at once while keys are made
KEYS_PER_PIPELINE = 1_000  # keys of one pipeline of the plain loop
GROUPS = 1_000

FILTER = """
def name_of(r):
    return r['value']['name']
GB('KeysReader').filter(lambda r: int(r['value']['age']) % 10 == 0).map(name_of).run('bench:hash:*')
"""
MISS = """
{how} f(r):
    override_reply('x')
GB('KeysReader').foreach(f).register(
    prefix='bench:miss:*', commands=['get'], eventTypes=['keymiss'], mode='async_local')
"""
EVENTS = "GB('KeysReader').foreach(lambda r: None).register(prefix='bench:event:*', mode='async_local')"


def batched(items: Iterable[T], size: int) -> Iterator[list[T]]:
    """Yields lists of ``size`` items, as itertools.batched of Python 3.12 does."""
    left = iter(items)
    while batch := list(islice(left, size)):
        yield batch


def fill(ports: Sequence[int], commands: Iterator[tuple[str, ...]]) -> None:
    """Writes keys to the masters that own them, as fast as the servers take them."""
    with Redis(port=ports[0]) as client:
        nodes = [node for node in topology.read(client) if node.role == "master"] if len(ports) > 1 else []
    owner = {slot: node.port for node in nodes for low, high in node.slots for slot in range(low, high + 1)}
    for chunk in batched(commands, CHUNK):
        by_port: dict[int, list[bytes]] = {}
        for words in chunk:
            port = owner[key_slot(words[1].encode())] if owner else ports[0]
            raw = "".join(f"${len(word)}\r\n{word}\r\n" for word in words)  # ASCII alone
            by_port.setdefault(port, []).append(f"*{len(words)}\r\n{raw}".encode())
        for port, raws in by_port.items():
            with socket.create_connection(("127.0.0.1", port)) as connection, connection.makefile("rb") as replies:
                connection.sendall(b"".join(raws))
                for _ in raws:
                    assert not replies.readline().startswith(b"-")


def run(client: Redis, code: str) -> list[Any]:
    results, errors = client.execute_command("RG.PYEXECUTE", code)
    assert not errors, errors
    return list(results)


def count(ports: Sequence[int], keys: int) -> float:
    """Keys a second of `count` over a cluster that holds just these."""
    fill(ports, (("SET", f"bench:key:{n}", "x") for n in range(keys)))
    with Redis(port=ports[0], socket_timeout=None) as client:
        code = "GB('KeysOnlyReader').count().run('bench:key:*')"
        assert run(client, code) == [str(keys).encode()]
        return keys / float(median(seconds_of(lambda: run(client, code)) for _ in range(TURNS)))


def plain_loop(client: Redis) -> list[bytes]:
    found: list[bytes] = []
    for keys in batched(client.scan_iter(match="bench:hash:*", count=KEYS_PER_PIPELINE), KEYS_PER_PIPELINE):
        pipeline = client.pipeline(transaction=False)
        for key in keys:
            pipeline.hgetall(key)
        found += [value[b"name"] for value in pipeline.execute() if int(value[b"age"]) % 10 == 0]
    return found


def filtered(port: int, hashes: int) -> tuple[float, float]:
    """(seconds of the plain loop, seconds of the function), over the same hashes of one node."""
    fill([port], (("HSET", f"bench:hash:{n}", "name", f"Ann {n}", "age", str(n % 90)) for n in range(hashes)))
    with Redis(port=port, socket_timeout=None) as client:
        assert sorted(plain_loop(client)) == sorted(run(client, FILTER))
        turns = [
            (seconds_of(lambda: plain_loop(client)), seconds_of(lambda: run(client, FILTER))) for _ in range(TURNS)
        ]
    plain, function = zip(*turns, strict=True)
    return median(plain), median(function)


def grouped(ports: Sequence[int], records: int) -> tuple[dict[str, float], list[float]]:
    """(records a second by step, peak MB of each worker)."""
    fill(ports, (("SET", f"bench:record:{n}", "x") for n in range(records)))
    group = f"lambda key: int(key.split(':')[2]) % {GROUPS}"
    codes = {
        "countby": f"GB('KeysOnlyReader').countby({group}).count().run('bench:record:*')",
        "groupby": f"GB('KeysOnlyReader').groupby({group}, lambda k, a, r: (a or 0) + 1).count().run('bench:record:*')",
    }
    with Redis(port=ports[0], socket_timeout=None) as client:
        rates = dict[str, float]()
        for name, code in codes.items():
            seconds = []
            for _ in range(3):
                start = time.perf_counter()
                assert run(client, code) == [str(min(GROUPS, records)).encode()]
                seconds.append(time.perf_counter() - start)
            rates[name] = records / median(seconds)
    return rates, [peak(worker_pid(port)) for port in ports]


def peak(pid: int) -> float:
    """Most resident memory that a process has had, MB."""
    with open(f"/proc/{pid}/status") as status:
        return next(int(line.split()[1]) / 1024 for line in status if line.startswith("VmHWM"))


def registered(client: Redis, code: str) -> None:
    client.execute_command("RG.PYEXECUTE", code, "ID", "bench", "UPGRADE")


def unregistered(client: Redis) -> None:
    for dump in client.execute_command("RG.DUMPREGISTRATIONS"):
        entry = dict(zip(dump[::2], dump[1::2], strict=True))
        if b"'sessionName':'bench'" in entry[b"PD"]:
            client.execute_command("RG.UNREGISTER", entry[b"id"])


def missed(port: int, gets: int, how: str) -> tuple[list[float], list[float]]:
    """(seconds of plain GETs of keys that are not there, seconds of those that a function answers), in turns."""
    plain, misses = list[float](), list[float]()
    with Redis(port=port) as client:
        registered(client, MISS.format(how=how))
        assert client.get("bench:miss:0") == b"x"
        for n in range(-gets // 10, gets):
            for times, key in ((plain, f"bench:none:{n}"), (misses, f"bench:miss:{n}")):
                seconds = seconds_of(lambda key=key: client.get(key))
                if n >= 0:
                    times.append(seconds)
        unregistered(client)
    return plain, misses


def hsets(client: Redis, count: int, pipelined: int) -> float:
    """HSETs a second."""
    start = time.perf_counter()
    for names in batched((f"bench:event:{n % 1_000}" for n in range(count)), pipelined):
        pipeline = client.pipeline(transaction=False)
        for name in names:
            pipeline.hset(name, "field", "value")
        pipeline.execute()
    return count / (time.perf_counter() - start)


def followed(port: int, count: int, pipelined: int) -> tuple[float, float]:
    """(HSETs a second that nobody follows, those that a function follows which does nothing), in turns."""
    turns = []
    with Redis(port=port) as client:
        hsets(client, count // 10, pipelined)
        for _ in range(TURNS):
            alone = hsets(client, count, pipelined)
            registered(client, EVENTS)
            turns.append((alone, hsets(client, count, pipelined)))
            unregistered(client)
    alone_rates, followed_rates = zip(*turns, strict=True)
    return median(alone_rates), median(followed_rates)


def main() -> None:
    print(f"functions of RedisGears, {machine.label()}, medians")
    with temporary_cluster(shards=2, prepared=False) as cluster:
        rate = count([port for _, port in cluster.addresses], KEYS)
        print(f"  count of {KEYS:,} keys on 2 shards          {rate:,.0f} keys/s (wanted >= 300,000)")
    with temporary_cluster(shards=1, prepared=False) as cluster:
        port = cluster.state.port
        for how, name in (("def", "function"), ("async def", "coroutine")):
            plain, hooked = missed(port, GETS, how)
            more = (median(hooked) - median(plain)) * 1e6
            print(f"  GET of a key that is not there            {percentiles(plain)}")
            print(f"  the same, answered by a {name:9}         {percentiles(hooked)}")
            print(f"  p50, more                                 {more:.0f} us (wanted <= 120)")
        for pipelined in (1, 100):
            alone, with_function = followed(port, HSETS, pipelined)
            print(
                f"  HSETs, {pipelined} at a time: alone / followed     {alone:,.0f} / {with_function:,.0f} a second, "
                f"{with_function / alone:.2f}x (wanted >= 0.6x)"
            )
        loop, function = filtered(port, HASHES)
        print(
            f"  filter and map of {HASHES:,} hashes, 1 shard  {loop:.2f} s plain loop / {function:.2f} s function, "
            f"{loop / function:.2f}x (wanted >= 1x)"
        )
    with temporary_cluster(shards=3, prepared=False) as cluster:
        rates, memory = grouped([port for _, port in cluster.addresses], RECORDS)
        for name, rate in rates.items():
            print(f"  {name} of {RECORDS:,} records, 3 shards   {rate:,.0f} records/s")
        print(f"  most memory of a worker                   {max(memory):.0f} MB (wanted <= 500)")


if __name__ == "__main__":
    main()
