"""RESTORE of damaged dumps, whose checksum nobody looks at, and all that can be done with what was taken.

Each byte by itself, and each cut, is tried in test_regressions.py (C10)."""

import random

from tests.module.servers import command

from .pair import Pair, Pipes, replies_of  # noqa: TID251 (this package is tests/module)

EDGES = [0, 1, 2, 0x40, 0x80, 0x81, 0xC3, 0xFF]  # bytes that mean something in a dump
OF_REDIS = 10  # type and module id: of Redis, not of the module
KEYS = 32  # that hold what was taken
STORED = [
    "AI.TENSORSET tensor FLOAT 2 VALUES 1 2",
    "AI.TENSORSET strings STRING 2 VALUES ab c",
    "AI.MODELSTORE model ONNX CPU TAG v1 BATCHSIZE 8 MINBATCHSIZE 2 MINBATCHTIMEOUT 999 PADDED 1 ids BLOB thebytesofit",
    "AI.MODELSTORE graph TF CPU INPUTS 2 a b OUTPUTS 1 c BLOB thebytesofagraph",
    "AI.SCRIPTSTORE script CPU TAG v2 ENTRY_POINTS 2 first second SOURCE def_first(tensors):_pass",
]


def damaged(chance: random.Random, dump: bytes) -> bytes:
    body = bytearray(dump[:-10])
    for _ in range(chance.choice((1, 2, 3, 5))):
        body[chance.randrange(OF_REDIS, len(body))] = chance.choice((*EDGES, chance.randrange(256)))
    if chance.random() < 0.3:
        del body[chance.randrange(OF_REDIS, len(body)) :]
    return bytes(body) + dump[-10:]


def used(dump: bytes, number: int) -> list[bytes]:
    key, copy = f"taken:{number % KEYS}", f"copy:{number % KEYS}"
    run = [key, "INPUTS", "1", "tensor", "OUTPUTS", "1", "out"]
    return [
        command("RESTORE", key, "0", dump, "REPLACE"),
        command("AI.TENSORGET", key, "META", "VALUES"),
        command("AI.MODELGET", key, "META", "BLOB"),
        command("AI.SCRIPTGET", key, "META", "SOURCE"),
        command("AI.INFO", key),
        command("AI.MODELEXECUTE", *run),
        command("AI.SCRIPTEXECUTE", key, "first", *run[1:]),
        command("AI.DAGEXECUTE", "LOAD", "1", key, "PERSIST", "1", "out", "|>", "AI.TENSORSET", "out", "FLOAT", "1"),
        command("COPY", key, copy, "REPLACE"),
        command("DUMP", copy),
        command("MEMORY", "USAGE", copy),
    ]


def originals(pair: Pair) -> list[bytes]:
    stored = [line.split(" ") for line in STORED]
    replies = replies_of(pair.master, *stored, *(["DUMP", words[1]] for words in stored))
    assert all(reply == b"OK" for reply in replies[: len(stored)]), replies
    return [bytes(reply) for reply in replies[len(stored) :]]


def skip_checksums(pair: Pair, whether: str) -> None:
    for server in (pair.master, pair.replica):
        replies_of(server, ["DEBUG", "SET-SKIP-CHECKSUM-VALIDATION", whether])


def play(pair: Pair, chance: random.Random, steps: int) -> int:
    dumps = originals(pair)
    payloads = [damaged(chance, chance.choice(dumps)) for _ in range(steps)]
    skip_checksums(pair, "1")  # of the replica and the append only file, too
    with Pipes(pair.master) as pipes:
        pipes.send([used(payload, number) for number, payload in enumerate(payloads)])
    pair.check()
    skip_checksums(pair, "0")
    if steps > 1000:
        pair.restart()
    return len(payloads)
