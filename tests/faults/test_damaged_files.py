"""The append only file, cut or changed anywhere: Redis starts with what it can read, or refuses.

The module never ends Redis, and what it loaded can be used. Redis itself refuses some files by a panic of its RDB
reader. The files are those of a node with documents, models, tensors, scripts and functions; the damaged copies are
read without a worker. With FAULTS=all many places of each file are damaged, else a few.
"""

import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest
from redis import Redis

from tests.nodes import Node, wait_until
from tests.unit.module.worker.test_models import adder

EVERY = os.environ.get("FAULTS") == "all"
PLACES = 60 if EVERY else 1  # besides the ends, in each file, for each kind of damage
SCRIPT = "GB('CommandReader').map(lambda x: 'hello').register(trigger='hello', mode='async_local')"
REPORT = "=== REDIS BUG REPORT"
OURS = ("crashed by signal", "shardqa.so(")  # in a report: not a panic of Redis' own
FOLDER = "appendonlydir"


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a node that was ended: half of its data in the base file, half in the other."""
    node = Node(tmp_path_factory.mktemp("written") / "node", extra=(("auto-aof-rewrite-percentage", "0"),))
    node.start()
    with node.client() as client:
        wait_until(lambda: client.info("shardqa")["shardqa_worker_state"] == "ready", "the worker is ready")
        fill(client, "base")
        client.bgrewriteaof()
        wait_until(lambda: not client.info("persistence")["aof_rewrite_in_progress"], "the file is written anew")
        fill(client, "incr")
    node.stop()
    return node.folder


def fill(client: Redis, name: str) -> None:
    client.execute_command("RG.PYEXECUTE", SCRIPT.replace("hello", name), "ID", name)
    client.execute_command("AI.MODELSTORE", f"model:{name}", "ONNX", "CPU", "TAG", name, "BLOB", adder())
    client.execute_command("AI.TENSORSET", f"tensor:{name}", "FLOAT", 2, 3, "VALUES", 1, 2, 3, 4, 5, 6)
    client.execute_command("AI.SCRIPTSTORE", f"script:{name}", "CPU", "ENTRY_POINTS", 1, "f", "SOURCE", FUNCTION)
    client.hset(f"doc:{name}", mapping={"title": name, "text": f"A text of {name}."})


FUNCTION = "def f(tensors: List[Tensor], keys: List[str], args: List[str]):\n    return tensors[0]\n"


def places(size: int, chance: Random) -> list[int]:
    """Offsets of a file, the first and the last byte among them."""
    return sorted({0, size - 1, *(chance.randrange(size) for _ in range(PLACES))})


def damages(file: Path) -> Iterator[tuple[str, bytes]]:
    """The file cut, with one bit flipped, and with a run of bytes lost, at each place."""
    whole, chance = file.read_bytes(), Random(file.name)
    for at in places(len(whole), chance):
        yield f"cut at {at}", whole[:at]
        yield f"bit flipped at {at}", whole[:at] + bytes([whole[at] ^ 1 << chance.randrange(8)]) + whole[at + 1 :]
        yield f"zeros from {at}", whole[:at] + bytes(min(16, len(whole) - at)) + whole[at + 16 :]


@pytest.mark.parametrize("kind", ["base.rdb", "incr.aof", "manifest"])
def test_redis_starts_with_what_it_can_read_or_refuses(written: Path, tmp_path: Path, kind: str) -> None:
    (file,) = (written / FOLDER).glob(f"*.{kind}")
    started = refused = 0
    for number, (damage, content) in enumerate(damages(file)):
        folder = tmp_path / str(number)
        shutil.copytree(written / FOLDER, folder / FOLDER)
        (folder / FOLDER / file.name).write_bytes(content)
        node = Node(folder, python=Path("none"), extra=(("aof-load-truncated", "yes"),))
        if starts(node, f"{kind}, {damage}"):
            use(node, f"{kind}, {damage}")
            started += 1
        else:
            refused += 1
        shutil.rmtree(folder)
    assert started + refused == number + 1
    assert refused, "no damage was noticed"
    assert started or kind != "incr.aof"


def starts(node: Node, what: str) -> bool:
    """Whether it does; one that refuses says why, and ends by itself."""
    node.launch()
    assert node.process is not None

    def settled() -> bool:
        assert node.process is not None
        return node.process.poll() is not None or node.answers()

    wait_until(settled, f"the node starts or ends ({what})")
    report = node.log.partition(REPORT)[2]
    assert not any(words in report for words in OURS), f"{what}: {report[:5000]}"
    if node.process.poll() is None:
        return True
    assert report or node.process.returncode == 1, f"{what}: {node.process.returncode}\n{node.log[-3000:]}"
    return False


def use(node: Node, what: str) -> None:
    """Everything that is there, by the command of its type; then it is saved, and the node ends as it should."""
    with node.client() as client:
        for key in client.scan_iter():
            kind = client.type(key).decode()
            command = {
                "AI_TENSOR": ("AI.TENSORGET", key, "META", "BLOB"),
                "AI__MODEL": ("AI.MODELGET", key, "META", "BLOB"),
                "AI_SCRIPT": ("AI.SCRIPTGET", key, "META", "SOURCE"),
                "hash": ("HGETALL", key),
            }.get(kind, ("DUMP", key))
            client.execute_command(*command)
            client.dump(key)
        client.execute_command("RG.DUMPREGISTRATIONS")
        assert client.info("shardqa")["shardqa_worker_state"]
        client.bgrewriteaof()
        wait_until(lambda: not client.info("persistence")["aof_rewrite_in_progress"], "the file is written anew")
        assert client.info("persistence")["aof_last_bgrewrite_status"] == "ok", what
    node.stop(signal.SIGTERM)
    assert node.process is not None
    assert node.process.returncode == 0, f"{what}: {node.process.returncode}\n{node.log[-3000:]}"
