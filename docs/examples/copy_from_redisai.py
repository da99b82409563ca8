"""Copies tensors, models and scripts from a server with RedisAI to shardqa, with their times to live.

    python copy_from_redisai.py redis://old:6379 redis://new:7000 [PATTERN]

The new server may belong to a cluster; of an old cluster, name each master in turn. What has a key there already is
overwritten. A graph of TensorFlow keeps its inputs and outputs. Needs redis-py.
"""

import sys
from collections import Counter
from collections.abc import Sequence
from typing import Any

from redis import Redis, RedisCluster
from redis.exceptions import RedisError

PATIENCE = 300  # seconds for one command: storing a model takes as long as loading it
BATCHING = ("batchsize", "minbatchsize", "minbatchtimeout")


def connected(url: str) -> Any:
    """A client of the node, or of its whole cluster."""
    node = Redis.from_url(url, socket_timeout=PATIENCE)
    return RedisCluster.from_url(url, socket_timeout=PATIENCE) if node.info("cluster").get("cluster_enabled") else node


def pairs(reply: Sequence[Any]) -> dict[str, Any]:
    """Names and values, which come flat."""
    return {name.decode().lower(): value for name, value in zip(reply[::2], reply[1::2], strict=True)}


def tensor(old: Any, key: bytes) -> list[Any]:
    reply = pairs(old.execute_command("AI.TENSORGET", key, "META", "BLOB"))
    return ["AI.TENSORSET", key, reply["dtype"], *reply["shape"], "BLOB", reply["blob"]]


def model(old: Any, key: bytes) -> list[Any]:
    reply = pairs(old.execute_command("AI.MODELGET", key, "META", "BLOB"))
    words = ["AI.MODELSTORE", key, reply["backend"], reply["device"], "TAG", reply["tag"]]
    for name in BATCHING:
        words += [name.upper(), reply[name]] if reply.get(name) else []
    if reply["backend"] == b"TF":
        for name in ("inputs", "outputs"):
            words += [name.upper(), len(reply[name]), *reply[name]]
    return [*words, "BLOB", *(reply["blob"] if isinstance(reply["blob"], list) else [reply["blob"]])]


def script(old: Any, key: bytes) -> list[Any]:
    reply = pairs(old.execute_command("AI.SCRIPTGET", key, "META", "SOURCE"))
    words = ["AI.SCRIPTSTORE", key, reply["device"], "TAG", reply["tag"]]
    return [*words, "ENTRY_POINTS", len(reply["entry points"]), *reply["entry points"], "SOURCE", reply["source"]]


KINDS = {b"AI_TENSOR": ("tensors", tensor), b"AI__MODEL": ("models", model), b"AI_SCRIPT": ("scripts", script)}


def main(source: str, target: str, pattern: str = "*") -> int:
    old, new = Redis.from_url(source, socket_timeout=PATIENCE), connected(target)
    counts, failed = Counter[str](), 0
    for key in old.scan_iter(match=pattern, count=1000):
        if (kind := old.type(key)) not in KINDS:
            continue
        name, words_of = KINDS[kind]
        try:
            new.execute_command(*words_of(old, key))
            if (left := int(old.pttl(key))) > 0:
                new.pexpire(key, left)
            counts[name] += 1
        except RedisError as error:
            print(f"{key.decode(errors='replace')} was not copied: {error}", file=sys.stderr)
            failed += 1
    print("copied", ", ".join(f"{counts[name]} {name}" for name, _ in KINDS.values()))
    return 1 if failed else 0


if __name__ == "__main__":
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
