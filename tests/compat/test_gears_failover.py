"""A master that dies while a function runs on every shard: the caller is told, and the replica runs it after."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from redis import Redis, RedisCluster, ResponseError

from shardqa.cluster.local import LocalCluster
from tests.compat.scripts import send
from tests.nodes import hanging, kill_node, process_of, running_cluster, wait_until

KEYS = 600
SLOW = "import time\nGB().map(lambda r: (time.sleep({pause}), r['key'])[1]).count().run('f:*')"


def test_the_caller_hears_of_it_and_the_replica_runs_the_function(tmp_path: Path) -> None:
    with running_cluster(tmp_path / "data", shards=3, replicas=1) as cluster:
        host, _, port = cluster.seed().rpartition(":")
        client: Any = RedisCluster(host=host, port=int(port), decode_responses=True, socket_timeout=120)
        for n in range(KEYS):
            client.set(f"f:{n}", n)
        client.execute_command("WAIT", 1, 10_000, target_nodes=RedisCluster.PRIMARIES)
        first = client.get_redis_connection(client.get_node("127.0.0.1", int(port)))
        assert send(first, "RG.PYEXECUTE", SLOW.format(pause=0)) == [[str(KEYS)], []]

        with ThreadPoolExecutor(1) as pool:
            reply = pool.submit(send, first, "RG.PYEXECUTE", SLOW.format(pause=0.02))
            wait_until(lambda: send(first, "RG.DUMPEXECUTIONS"), "it runs")
            kill_node(cluster, 1)
            (count,), (error,) = reply.result(60)
        assert int(count) < KEYS
        assert f"shard 127.0.0.1:{int(port) + 1} did not answer" in error

        def counted() -> bool:
            return bool(send(first, "RG.PYEXECUTE", SLOW.format(pause=0)) == [[str(KEYS)], []])

        wait_until(counted, "the replica took over", 60)
        client.close()


def test_a_trigger_names_the_shard_that_stands_still(bare_cluster: LocalCluster, shards: list[Redis]) -> None:
    send(shards[0], "RG.PYEXECUTE", "GB('CommandReader').map(lambda r: 'here').register(trigger='still')")
    assert send(shards[0], "RG.TRIGGER", "still") == ["here"] * 3
    port = shards[0].connection_pool.connection_kwargs["port"]
    number, node = next((number, node) for number, node in enumerate(bare_cluster.state.nodes) if node.port != port)
    who = f"shard 127.0.0.1:{node.port} (did not answer|left the execution)"
    with hanging(process_of(bare_cluster, number).pid), pytest.raises(ResponseError, match=who):
        send(shards[0], "RG.TRIGGER", "still")

    def all_is_well() -> bool:
        with suppress(ResponseError):
            return bool(send(shards[0], "RG.TRIGGER", "still") == ["here"] * 3)
        return False

    wait_until(all_is_well, "the node answers, and its worker", 60)
