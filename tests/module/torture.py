"""`make torture`: random commands, frames of a hostile worker and damaged dumps against a master, its replica and its
append only file. `python -m tests.module.torture --minutes 5`; the module of SHARDQA_MODULE, with a sanitizer in
SHARDQA_PRELOAD (see servers.py).

A round is one fuzzer with one seed, so a line `fuzzer seed` says all that is needed to have it again; those of rounds
that found something are kept in torture_seeds.txt and come first. After every round master and replica hold the same,
and the master holds it still when it has read its append only file again.
"""

import argparse
import random
import struct
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from .servers import Server, in_sync, until  # noqa: TID251 (this package is tests/module)

SEEDS = Path(__file__).with_name("torture_seeds.txt")
STEPS = 400  # random things of one round
BATCH = 50  # commands of one pipeline

KEYS = ["t", "u", "v", "m", "n", "plain", "hash", "", "{a}b", "k" * 300, "\xff\x00\r\n"]
NUMBERS = ["0", "1", "-1", "2", "3", "1e5", "4294967296", "9223372036854775807", "-9223372036854775808", "x", "", "1.5"]
WORDS = [
    *("FLOAT", "DOUBLE", "INT8", "INT64", "UINT8", "BOOL", "STRING", "VALUES", "BLOB", "META", "ONNX", "CPU", "CPU:0"),
    *(
        "GPU",
        "CP\xff",
        "TAG",
        "BATCHSIZE",
        "MINBATCHSIZE",
        "MINBATCHTIMEOUT",
        "INPUTS",
        "OUTPUTS",
        "TIMEOUT",
        "RESETSTAT",
    ),
    *(
        "echo",
        "seen",
        "misses",
        "nobody",
        "ID",
        "UPGRADE",
        "REPLACE_WITH",
        "UNBLOCKING",
        "REQUIREMENTS",
        "CLUSTER",
        "*",
    ),
]
NAMES = [
    *(
        "AI.TENSORSET",
        "AI.TENSORGET",
        "AI.MODELSTORE",
        "AI.MODELGET",
        "AI.MODELDEL",
        "AI.MODELEXECUTE",
        "AI._MODELSCAN",
    ),
    *("AI.INFO", "RG.PYEXECUTE", "RG.TRIGGER", "RG.TRIGGERONKEY", "RG.DUMPREGISTRATIONS", "RG.UNREGISTER"),
    *(
        "RG.DUMPEXECUTIONS",
        "RG.GETEXECUTION",
        "RG.CONFIGGET",
        "RG._REGISTER",
        "RG._UNREGISTER",
        "RG._PEER",
        "shardqa.get",
    ),
    *("SET", "GET", "DEL", "COPY", "RENAME", "HSET", "UNLINK", "FLUSHALL", "OBJECT", "DUMP", "EXPIRE", "INFO"),
]
REPLIES = [b"+OK\r\n", b"*1\r\n:5\r\n", b"-ERR no\r\n", b"$5\r\nab\r\n", b"*9\r\n", b"", b"*2\r\n*0\r\n*0\r\n"]
EDGES = [0, 1, 0x40, 0x80, 0x81, 0xC3, 0xFF]  # bytes that mean something in a dump
HANGING = ("hang", "die", "garbage", "giant", "cut", "close", "crash", "deadlock", "compute")


class Pair:
    """Master and replica with an append only file each."""

    def __init__(self, folder: Path) -> None:
        quick = "TIMEOUT 2000 HEARTBEAT 10000"
        self.master = Server(folder / "master", arguments=quick).start()
        self.replica = Server(folder / "replica", f"replicaof 127.0.0.1 {self.master.port}", arguments=quick).start()
        self.follow()
        for server in (self.master, self.replica):  # damaged dumps are to be read, also out of the file
            server.client().execute_command("DEBUG", "SET-SKIP-CHECKSUM-VALIDATION", "1")

    def follow(self) -> None:
        until(lambda: self.replica.client().info("replication")["master_link_status"] == "up", 30)

    def check(self) -> None:
        """Raises AssertionError where the two differ, or the file from memory."""
        until(lambda: self.master.info()["deferred_bytes"] == 0 and self.master.info()["waiting_clients"] == 0, 30)
        in_sync(self.master, self.replica)
        before = digest(self.master)
        assert digest(self.replica) == before, "master and replica differ"
        self.master.client().execute_command("DEBUG", "LOADAOF")
        assert digest(self.master) == before, "the append only file gives another data set"
        self.healthy()

    def healthy(self) -> None:
        for server in (self.master, self.replica):
            assert server.alive()
            assert "BUG REPORT" not in server.log, server.log[-4000:]
            reports = [path.read_text() for path in server.folder.glob("asan*")]  # a refused allocation is a warning
            found = [report for report in reports if "ERROR: " in report or "runtime error" in report]
            assert not found, found[0][:8000]

    def stop(self) -> None:
        for server in (self.replica, self.master):
            server.stop()


def digest(server: Server) -> tuple[Any, ...]:
    """Of the keys, and what is registered."""
    info = server.info()
    return server.client().execute_command("DEBUG", "DIGEST"), info["sessions"], info["registrations"], info["hooks"]


def word(chance: random.Random) -> bytes:
    kind = chance.random()
    if kind < 0.1:
        return chance.randbytes(chance.randrange(40))
    if kind < 0.12:
        return b"x" * chance.randrange(100_000)
    return chance.choice(chance.choice((KEYS, NUMBERS, WORDS))).encode("latin-1")


def command(chance: random.Random) -> list[bytes]:
    if chance.random() < 0.4:  # one that is nearly right, so that the others meet values
        return [w.encode("latin-1") for w in chance.choice(likely(chance))]
    words = [chance.choice(NAMES).encode(), *(word(chance) for _ in range(chance.randrange(9)))]
    return words if len(words) < 2 or words[1].decode("latin-1") not in HANGING else words[:1]


def likely(chance: random.Random) -> list[list[str]]:
    key, other, number = chance.choice(KEYS[:6]), chance.choice(KEYS[:6]), str(chance.randrange(5))
    return [
        ["AI.TENSORSET", key, "FLOAT", number, "VALUES", "1", "2"],
        ["AI.TENSORSET", key, "INT8", "2", "BLOB", "ab"],
        ["AI.TENSORSET", key, "STRING", "2", "BLOB", "a\x00b\x00"],
        ["AI.MODELSTORE", key, "ONNX", "CPU", "TAG", "v", "BATCHSIZE", number, "BLOB", "a file"],
        ["AI.MODELEXECUTE", key, "INPUTS", "1", other, "OUTPUTS", "1", chance.choice(KEYS[:6]), "TIMEOUT", "500"],
        ["AI.MODELGET", key, "META", "BLOB"],
        ["AI.TENSORGET", key, "META", "VALUES"],
        ["COPY", key, other, "REPLACE"],
        ["RENAME", key, other],
        ["SET", key, "x"],
        ["GET", f"answer:{number}"],
        ["DEL", key],
    ]


def send(server: Server, commands: list[list[bytes]]) -> None:
    client = server.client()
    client.response_callbacks.clear()  # replies as they come, whatever redis-py expects of a command
    pipe = client.pipeline(transaction=False)
    for words in commands:
        pipe.execute_command(*words)
    pipe.execute(raise_on_error=False)


# ---- the fuzzers ----


def vectors(pair: Pair, chance: random.Random) -> None:
    """AI.* and RG.* commands with any arguments."""
    for _ in range(STEPS // BATCH):
        send(pair.master, [command(chance) for _ in range(BATCH)])


def frames(pair: Pair, chance: random.Random) -> None:
    """What a hostile worker may send; one in a hundred breaks the stream."""
    server = pair.master
    for _ in range(STEPS // BATCH):
        sent = b"".join(frame(chance) for _ in range(BATCH))
        if chance.random() < 0.02:
            at = chance.randrange(len(sent))
            sent = sent[:at] + chance.randbytes(chance.randrange(20)) + sent[at + 1 :]
        send(server, [[b"RG.TRIGGER", b"bytes", sent]])
        send(server, [command(chance) for _ in range(5)])
        until(lambda: server.info()["worker_state"] == "ready", 30)


def frame(chance: random.Random) -> bytes:
    kind = chance.choice([64, 65, 65, 66, 66, 67, 67, 67, 68, 68, 69, 70, 71, 72, 73])
    id = chance.choice([0, 1, chance.randrange(2000), 2**63])
    if kind == 65:
        payload = chance.choice(
            [b"+OK\r\n", b"*1\r\n:5\r\n", b"-ERR no\r\n", b"$5\r\nab\r\n", b"*9\r\n", b"", chance.randbytes(9)]
        )
    else:
        payload = listed(items(kind, chance))
    return struct.pack("<IBBHQ", len(payload), kind, 0, 2, id) + payload


def items(kind: int, chance: random.Random) -> list[bytes]:
    if chance.random() < 0.3 and kind != 64:
        return [word(chance) for _ in range(chance.randrange(1, 8))]
    id, number = b"s-%d" % chance.randrange(4), b"%d" % chance.randrange(3)
    registration = [id, b"KeysReader", b"async", b"", b"answer:*", b"", b"1", b"keymiss", b"0", b"1", b"get"]
    calls = [command(chance) for _ in range(chance.randrange(1, 4))]
    rights = chance.choice([b"", b"sfuzz", b"r1"])
    match kind:
        case 64:
            return [b"2", b"1", b"fuzzed"]
        case 66:
            return [struct.pack("<Q", chance.randrange(10**6)), chance.choice([b"FLOAT 1", b"INT8 2;INT8 2"]), b"abcd"]
        case 67:
            parts = [part for call in calls for part in (b"%d" % len(call), *call)]
            return [rights, b"0", b"%d" % len(calls), *parts]
        case 68:
            return [b"fuzz", b"default", b"code", b"1", *registration]
        case 70:
            return [chance.choice([b"", b"doc:", b"t"])]
        case 71:
            return [chance.choice([b"notice", b"x"]), b"fuzzed \xff\x00\n"]
        case 72:
            return [b"name", number]
        case _:
            return [id]


def listed(items: list[bytes]) -> bytes:
    return struct.pack("<I", len(items)) + b"".join(struct.pack("<I", len(item)) + item for item in items)


def dumps(pair: Pair, chance: random.Random) -> None:
    """RESTORE of damaged dumps, and all that can be done with what was taken."""
    client = pair.master.client()
    client.delete("tensor", "model")
    client.execute_command("AI.TENSORSET", "tensor", "FLOAT", "2", "VALUES", "1", "2")
    numbers = ["BATCHSIZE", "8", "MINBATCHSIZE", "2", "MINBATCHTIMEOUT", "999"]
    client.execute_command(
        "AI.MODELSTORE", "model", "ONNX", "CPU", "TAG", "v1", *numbers, "BLOB", "the bytes of a model"
    )
    originals = [bytes(client.dump(key)) for key in ("tensor", "model")]
    for _ in range(STEPS // BATCH):
        commands: list[list[bytes]] = []
        for _ in range(BATCH // 5):
            commands += used(damaged(chance, chance.choice(originals)))
        send(pair.master, commands)


def damaged(chance: random.Random, dump: bytes) -> bytes:
    body = bytearray(dump[:-10])
    for _ in range(chance.choice([1, 1, 1, 2, 5])):
        body[chance.randrange(10, len(body))] = chance.choice(
            [0, 1, 0x40, 0x80, 0x81, 0xC3, 0xFF, chance.randrange(256)]
        )
    if chance.random() < 0.3:
        body = body[: chance.randrange(1, len(body))]
    return bytes(body) + dump[-10:-8] + 8 * b"\xff"  # a checksum that can't pass for the end of a value


def used(dump: bytes) -> list[list[bytes]]:
    return [
        [b"RESTORE", b"copy", b"0", dump, b"REPLACE"],
        [b"AI.TENSORGET", b"copy", b"META", b"VALUES"],
        [b"AI.MODELGET", b"copy", b"META", b"BLOB"],
        [b"AI.MODELEXECUTE", b"copy", b"INPUTS", b"1", b"tensor", b"OUTPUTS", b"1", b"out", b"TIMEOUT", b"200"],
        [b"COPY", b"copy", b"another", b"REPLACE"],
    ]


FUZZERS: dict[str, Callable[[Pair, random.Random], None]] = {"vectors": vectors, "frames": frames, "dumps": dumps}

# ---- rounds ----


def kept() -> list[tuple[str, int]]:
    lines = [line.split() for line in SEEDS.read_text().splitlines() if line and not line.startswith("#")]
    return [(name, int(seed)) for name, seed in lines]


@contextmanager
def running(folder: Path) -> Iterator[Pair]:
    pair = Pair(folder)
    try:
        yield pair
    finally:
        pair.stop()


def play(pair: Pair, name: str, seed: int) -> None:
    try:
        FUZZERS[name](pair, random.Random(seed))
        pair.check()
    except BaseException:
        print(f"found by the round: {name} {seed}", file=sys.stderr, flush=True)
        raise


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--seed", type=int, default=time.time_ns() % 10**9, help="of the first round")
    parser.add_argument("--only", choices=list(FUZZERS), help="one fuzzer alone")
    options = parser.parse_args()
    names = [options.only] if options.only else list(FUZZERS)
    counts = dict.fromkeys(names, 0)
    end = time.monotonic() + 60 * options.minutes
    with tempfile.TemporaryDirectory(prefix="shardqa-torture-") as folder, running(Path(folder)) as pair:
        for name, seed in kept():
            play(pair, name, seed)
        seed = options.seed
        while time.monotonic() < end:
            for name in names:
                play(pair, name, seed)
                counts[name] += 1
            seed += 1
        deaths = pair.master.info()["worker_restarts"]
    told = ", ".join(f"{count} rounds of {name}" for name, count in counts.items())
    print(f"torture: {told}, {STEPS} steps each, seeds from {options.seed}: nothing found; {deaths} workers died")


if __name__ == "__main__":
    main()
