"""RESTORE of damaged dumps, with a checksum that is right, and all that can be done with what was taken.

A round goes on where the last one stopped: after some rounds every byte of each type's dump has had every bit flipped,
the bytes that mean something in a dump put in its place, and the dump cut there."""

import random
from collections.abc import Iterator
from itertools import islice
from typing import Any

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
POLYNOMIAL = 0x95AC9329AC4BC9B5  # Redis' CRC-64 (Jones), reflected


def _table() -> list[int]:
    table = []
    for byte in range(256):
        crc = byte
        for _ in range(8):
            crc = crc >> 1 ^ (POLYNOMIAL if crc & 1 else 0)
        table.append(crc)
    return table


TABLE = _table()


def crc64(data: bytes) -> bytes:
    crc = 0
    for byte in data:
        crc = TABLE[(crc ^ byte) & 0xFF] ^ crc >> 8
    return crc.to_bytes(8, "little")


def damaged(dump: bytes) -> Iterator[bytes]:
    """Every way, in order."""
    body, version = dump[:-10], dump[-10:-8]
    for at in range(OF_REDIS, len(body)):
        for byte in [body[at] ^ 1 << bit for bit in range(8)] + EDGES:
            if byte != body[at]:
                yield closed(body[:at] + bytes([byte]) + body[at + 1 :] + version)
    for length in range(OF_REDIS, len(body)):
        yield closed(body[:length] + version)


def closed(dump: bytes) -> bytes:
    return dump + crc64(dump)


def twice_damaged(chance: random.Random, dump: bytes) -> bytes:
    body = bytearray(dump[:-10])
    for _ in range(chance.choice((2, 3, 5))):
        body[chance.randrange(OF_REDIS, len(body))] = chance.choice((*EDGES, chance.randrange(256)))
    if chance.random() < 0.3:
        del body[chance.randrange(OF_REDIS, len(body)) :]
    return closed(bytes(body) + dump[-10:-8])


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


class Sweep:
    """The place where the rounds are: `left` is None once every way was tried."""

    def __init__(self) -> None:
        self.left: Iterator[bytes] | None = None
        self.whole = 0  # times all of it was done
        self.done = 0

    def next(self, dumps: list[bytes], count: int) -> list[bytes]:
        if self.left is None:
            self.left = (one for dump in dumps for one in damaged(dump))
        taken = list(islice(self.left, count))
        self.done += len(taken)
        if len(taken) < count:
            self.left, self.whole = None, self.whole + 1
        return taken


def play(pair: Pair, chance: random.Random, steps: int) -> int:
    """A third of the steps are random, so that a seed alone brings them again; the sweep is the same for all."""
    dumps = originals(pair)
    payloads = [twice_damaged(chance, chance.choice(dumps)) for _ in range(steps // 3)]
    payloads += sweep_of(pair).next(dumps, steps - len(payloads))
    with Pipes(pair.master) as pipes:
        pipes.send([used(payload, number) for number, payload in enumerate(payloads)])
    pair.check()
    if steps > 1000:
        pair.restart()
    return len(payloads)


_sweeps: dict[int, Sweep] = {}


def sweep_of(pair: Any) -> Sweep:
    return _sweeps.setdefault(id(pair), Sweep())
