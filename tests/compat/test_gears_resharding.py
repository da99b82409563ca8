"""Batches over a cluster that moves slots meanwhile: every key once. And a master that joins later."""

import itertools
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from redis import Redis, RedisCluster
from redis.crc import key_slot

from shardqa import topology
from shardqa.worker.gears.pipeline.slot_reader import glob
from tests.compat.scripts import send
from tests.compat.wheels import make_wheel
from tests.nodes import running_cluster, running_node, wait_until
from tests.slots import move

KEYS = 4000


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """Arguments of the module: a folder of wheels."""
    folder = tmp_path_factory.mktemp("wheels")
    make_wheel(folder, "sqa_shards", "1.0", "required")
    return ("REQUIREMENTS_DIR", str(folder))


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory, packages: tuple[str, str]) -> Iterator[RedisCluster]:
    data = tmp_path_factory.mktemp("cluster") / "data"
    with running_cluster(data, shards=2, module_arguments=packages) as local:
        client = RedisCluster(host="127.0.0.1", port=local.state.port, decode_responses=True)
        with client.pipeline() as pipeline:
            for n in range(KEYS):
                pipeline.set(f"move:{n}", n)
            pipeline.execute()
        yield client
        client.close()


def nodes_of(cluster: RedisCluster) -> list[Redis]:
    """Clients of the masters that leave replies as bytes."""
    primaries = cluster.get_primaries()  # type: ignore[no-untyped-call, unused-ignore]
    return [Redis(host=node.host, port=node.port, socket_timeout=120) for node in primaries]


def test_no_key_is_read_twice_or_never_while_slots_move(cluster: RedisCluster) -> None:
    script = "GB().map(lambda r: int(r['value'])).aggregate(0, lambda a, r: a + r, lambda a, r: a + r).run('move:*')"
    nodes, over, moves = nodes_of(cluster), threading.Event(), itertools.count()

    def reshard() -> None:
        for slot in itertools.cycle(range(0, topology.SLOTS, 97)):
            if over.is_set():
                break
            move(slot, nodes)
            next(moves)

    mover = threading.Thread(target=reshard)
    mover.start()
    try:
        for _ in range(4):
            assert send(nodes[0], "RG.PYEXECUTE", script) == [[b"%d" % (KEYS * (KEYS - 1) // 2)], []]
        assert next(moves) > 0
    finally:
        over.set()
        mover.join(60)


PATTERNS = [
    "", "*", "a*", "*b", "a?c", "h[ae]llo", "h[^e]llo", "h[a-c]llo", "h[c-a]llo", r"a\*b", r"a[\]]b", "a[", "[]", "[^]",
    "a.c", "a[b-", r"a\\", "**x*", "[*]",
]  # fmt: skip
NAMES = [
    "", "a", "ab", "abc", "a.c", "hallo", "hello", "hbllo", "a*b", "a]b", "a[", "x", "aXb", "*", "a\nc", "\\", "a\\",
]  # fmt: skip


@pytest.mark.parametrize("pattern", PATTERNS)
def test_patterns_match_as_redis_matches_them(cluster: RedisCluster, pattern: str) -> None:
    node, tag = served(cluster)
    keys = [f"{tag}{name}".encode() for name in NAMES]
    node.mset(dict.fromkeys(keys, "1"))
    matched = set(node.scan_iter(match=tag + pattern, count=10_000)) & set(keys)
    matches = glob((tag + pattern).encode())
    assert {key for key in keys if matches(key)} == matched
    node.delete(*keys)


def served(cluster: RedisCluster) -> tuple[Redis, str]:
    """A node and its hash tag in braces, once it serves that slot: others' tests move slots."""
    node = nodes_of(cluster)[0]
    wait_until(lambda: topology.myself(topology.read(node)).owns(key_slot(tag_of(node).encode())), "its tag is its own")
    return node, f"{{{tag_of(node)}}}"


def tag_of(client: Redis) -> str:
    script = "GB('ShardsIDReader').map(lambda _: hashtag()).run(mode='async_local')"
    return str(send(client, "RG.PYEXECUTE", script)[0][0].decode())


REQUIRING = """import sqa_shards
GB('CommandReader').map(lambda r: sqa_shards.VALUE).register(trigger='{trigger}', mode='async_local')"""


def test_what_a_script_requires_is_installed_on_every_shard(cluster: RedisCluster) -> None:
    nodes = nodes_of(cluster)
    code = REQUIRING.format(trigger="required")
    assert send(nodes[0], "RG.PYEXECUTE", code, "ID", "required", "REQUIREMENTS", "sqa_shards<2") == b"OK"
    assert [send(node, "RG.TRIGGER", "required") for node in nodes] == [[b"required"]] * len(nodes)
    assert all(b"sqa_shards<2" in send(node, "RG.PYDUMPREQS")[0] for node in nodes)


def test_a_master_that_joins_later_gets_what_is_registered(
    cluster: RedisCluster, tmp_path: Path, packages: tuple[str, str]
) -> None:
    first = nodes_of(cluster)[0]
    code = REQUIRING.format(trigger="late-required")
    assert send(first, "RG.PYEXECUTE", code, "ID", "late-required", "REQUIREMENTS", "sqa_shards") == b"OK"
    script = "import random\nx = random.random()\nGB('CommandReader').map(lambda r: x).register(trigger='late-x')"
    assert send(first, "RG.PYEXECUTE", script, "ID", "late") == b"OK"
    hook = "GB('CommandReader').map(lambda r: 'hooked').register(hook='hset', keyprefix='late:')"
    assert send(first, "RG.PYEXECUTE", hook, "ID", "late-hook") == b"OK"
    with running_node(tmp_path, cluster=True, module_arguments=packages) as node, node.client() as late:
        send(first, "CLUSTER", "MEET", "127.0.0.1", str(node.port), str(node.config.bus_port))
        wait_until(lambda: len(topology.read(first)) == 3 and len(topology.read(late)) == 3, "they have met")
        giver = next(node for node in nodes_of(cluster) if topology.myself(topology.read(node)).owns(0))
        own = topology.myself(topology.read(late)).id
        wait_until(lambda: own in {other.id for other in topology.read(giver)}, "both know")
        move(0, [giver, late])
        wait_until(lambda: send(late, "RG.TRIGGER", "late-x") == send(first, "RG.TRIGGER", "late-x"), "one x")
        wait_until(lambda: send(late, "HSET", "late:{06S}", "f", "v") == b"hooked", "the hook as well")
        wait_until(lambda: send(late, "RG.TRIGGER", "late-required") == [b"required"], "what is required, too")
        ids = [sorted(dump[1] for dump in send(shard, "RG.DUMPREGISTRATIONS")) for shard in (first, late)]
        assert ids[0] == ids[1]
        assert send(late, "RG.REFRESHCLUSTER") == b"OK"
