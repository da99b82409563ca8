"""RDB files with tensors, models, a script and registrations: damaged in what the module wrote, and loaded by a node
of their own. One that refuses the file ends with a message, as Redis does; one that takes it has to work."""

import random
import socket
import tempfile
from pathlib import Path

from tests.nodes import wait_until

from .dumps import EDGES, STORED  # noqa: TID251 (this package is tests/module)
from .pair import PATIENCE, Fault, Pair, Tortured, replies_of  # noqa: TID251

MODULE_AUX = 0xF7  # opcode of what a module saves beside the keys
MODULE_VALUE = 0x07  # type of a key's value
MODULE_ID = 9  # bytes that name the type, in both
OPTIONS = (
    "appendonly no",
    "rdbchecksum no",
    "rdbcompression no",
    "dbfilename dump.rdb",
    "crash-memcheck-enabled no",  # of Redis' own panics: it reads all memory, which the sanitizer reports
)
DUPLICATED = "Duplicated key found in RDB file"  # Redis' own panic, where a key's damaged name is another's


def saved(folder: Path) -> bytes:
    """A file with all that the module stores."""
    node = Tortured(folder / "origin", *OPTIONS).start()
    try:
        replies_of(node, *(line.split(" ") for line in STORED))
        node.register("hooks", ["hooks-1", "KeysReader", "answer:*", "", ["keymiss"], [], ["get r 1 1"]])
        node.register("other", ["other-1", "CommandReader", "", "echo", [], [], []])
        replies_of(node, ["SAVE"])
        return (node.folder / "dump.rdb").read_bytes()
    finally:
        node.stop()


def of_the_module(rdb: bytes) -> list[int]:
    """Places of bytes that the module wrote: from each module id to what looks like the next one, or the end."""
    names = [b"\x81" + rdb[at + 2 : at + 10] for at in range(len(rdb) - 10) if rdb[at] in (MODULE_AUX, MODULE_VALUE)
             and rdb[at + 1] == 0x81]  # fmt: skip
    places: list[int] = []
    for name in dict.fromkeys(names):
        at = rdb.find(name)
        while at >= 0:
            following = [found for other in dict.fromkeys(names) if (found := rdb.find(other, at + 1)) > 0]
            places += range(at + MODULE_ID, min([*following, len(rdb) - MODULE_ID]))
            at = rdb.find(name, at + 1)
    return sorted(set(places))


def damaged(chance: random.Random, rdb: bytes, places: list[int]) -> bytes:
    changed = bytearray(rdb)
    for _ in range(chance.choice((1, 1, 1, 2, 4))):
        at = chance.choice(places)
        changed[at] = chance.choice((changed[at] ^ 1 << chance.randrange(8), chance.choice(EDGES)))
    return bytes(changed[: chance.choice(places)]) if chance.random() < 0.2 else bytes(changed)


def load(folder: Path, rdb: bytes) -> None:
    """Raises Fault where the node crashes, or takes what it can't keep."""
    node = Tortured(folder, *OPTIONS, worker=False)
    (folder / "dump.rdb").write_bytes(rdb)
    node.launch()
    try:
        wait_until(lambda: has_ended(node) or refuses(node) or listens(node), "it loads", PATIENCE)
        if not has_ended(node) and not refuses(node):
            use(node)
    finally:
        node.kill() if refuses(node) else node.stop()
    assert node.process is not None
    if reported := node.reported():
        raise Fault(reported)
    if DUPLICATED in node.log:
        return
    if node.process.returncode not in (0, 1, -9 if refuses(node) else 0) or "BUG REPORT" in node.log:
        raise Fault(f"redis-server ended with {node.process.returncode}:\n{node.log[-4000:]}")


def has_ended(node: Tortured) -> bool:
    return node.process is not None and node.process.poll() is not None


def refuses(node: Tortured) -> bool:
    """Redis then looks the file through to say more of it, which in 7.0 never ends where a module's value is cut."""
    return "Internal error in RDB reading" in node.log


def listens(node: Tortured) -> bool:
    try:
        with socket.create_connection(("127.0.0.1", node.port), 1) as connection:
            connection.sendall(b"PING\r\n")
            return connection.recv(100).startswith(b"+PONG")
    except OSError:
        return False


def use(node: Tortured) -> None:
    """All that it took is listed, dumped, and the same after it was saved and loaded again."""
    keys = [line.split(" ")[1] for line in STORED]
    commands = [[name, key, "META"] for key in keys for name in ("AI.TENSORGET", "AI.MODELGET", "AI.SCRIPTGET")]
    before, *_ = replies_of(
        node, ["DEBUG", "DIGEST"], ["RG.DUMPREGISTRATIONS"], *(["DUMP", key] for key in keys), *commands
    )
    try:
        after = replies_of(node, ["DEBUG", "RELOAD"], ["DEBUG", "DIGEST"])[1]
    except OSError as error:
        raise Fault(f"what was taken can't be saved and loaded again: {error}\n{node.log[-2000:]}") from error
    if before != after:
        raise Fault(f"what was taken is another data set once it was saved: {before!r} and {after!r}")


def play(_pair: Pair, chance: random.Random, steps: int) -> int:
    with tempfile.TemporaryDirectory(prefix="shardqa-torture-files-") as name:
        folder = Path(name)
        rdb = saved(folder)
        places = of_the_module(rdb)
        for number in range(steps):
            load(folder / str(number), damaged(chance, rdb, places))
    return steps
