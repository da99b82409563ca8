"""Frames of a hostile worker. Most frames are whole, and wrong in what they say; now and then one breaks the
stream, which costs the worker and with it what was sent after it."""

import random
import socket
import struct
from collections.abc import Callable

from tests.module.fake_worker import pack
from tests.module.servers import command, until

from .pair import PATIENCE, Pair, read, replies_of  # noqa: TID251 (this package is tests/module)
from .vectors import Vocabulary, bent, raw, register_hooks  # noqa: TID251
from .worker import PLACEHOLDERS  # noqa: TID251

HEADER = struct.Struct("<IBBHQ")
BATCH = 250  # frames sent at once
HANGING = """
RG.TRIGGER hang
RG.TRIGGERONKEY hang t
RG.PYEXECUTE do_nothing
AI.MODELSTORE h ONNX CPU BLOB HANG
AI.SCRIPTSTORE h CPU ENTRY_POINTS 1 f SOURCE HANG
AI.MODELEXECUTE m INPUTS 1 t OUTPUTS 1 u TIMEOUT 1999
AI.DAGEXECUTE LOAD 1 t PERSIST 1 u TIMEOUT 1999 |> AI.TENSORSET u FLOAT 1
RG.DUMPREGISTRATIONS
GET answer:hang
HSET hooked:hang f v
"""
# sections that the worker opens; those of triggers in transactions and scripts are numbered from the last on
SECTIONS = [*[b"2"] * 12, b"0", b"1", b"3", b"", b"-2", b"x", b"281474976710655", b"281474976710656"]
REPLIES = [
    b"+OK\r\n",
    b"*1\r\n:5\r\n",
    b"-ERR no\r\n",
    b"$5\r\nab\r\n",
    b"*9\r\n",
    b"",
    b"*2\r\n*0\r\n*0\r\n",
    b"$-1\r\n",
    b"*2\r\n*1\r\n$1\r\nx\r\n*1\r\n$1\r\ny\r\n",
    b"%1\r\n+a\r\n:1\r\n",
    b"_\r\n",
    b"#t\r\n",
    b",1.5\r\n",
    b"*1\r\n" * 20 + b":1\r\n",
    b"=5\r\ntxt:a\r\n",
    b"(12345678901234567890\r\n",
    b"-KEEP\r\n",
]
LAYOUTS = [
    b"FLOAT 1",
    b"INT8 2;INT8 2",
    b"FLOAT 1,1",
    b"STRING 2",
    b"",
    b";",
    b"FLOAT -1",
    b"FLOAT 9223372036854775807",
    b"FLOAT 4294967296,4294967296",
    b"NOTHING 1",
    b"FLOAT",
    b"BOOL 0",
]
RIGHTS = [b"", b"sfuzz", b"shooks", b"r1", b"r", b"s", b"x9", b"r99999999999999999999"]
RESTS = [b"", b"1", b"0", b"-1", b"99999999999999999999", b"x", b"\xff" * 8]


def id_of(chance: random.Random) -> int:
    """Mostly of a request that hangs."""
    if chance.random() < 0.6:
        return PLACEHOLDERS + chance.randrange(64)
    return chance.choice((0, 1, chance.randrange(5000), 2**61))


def framed(kind: int, id: int, payload: bytes) -> bytes:
    return HEADER.pack(len(payload), kind, 0, 2, id) + payload


def reply(chance: random.Random, _vocabulary: Vocabulary) -> bytes:
    return chance.randbytes(chance.randrange(12)) if chance.random() < 0.2 else chance.choice(REPLIES)


def tensors(chance: random.Random, _vocabulary: Vocabulary) -> bytes:
    data = [chance.randbytes(chance.choice((0, 1, 4, 4, 8))) for _ in range(chance.randrange(4))]
    return pack([struct.pack("<Q", chance.randrange(10**6)), chance.choice(LAYOUTS), *data])


def done(chance: random.Random, _vocabulary: Vocabulary) -> bytes:
    kept = chance.randrange(3)
    data = [chance.randbytes(chance.choice((0, 4, 8))) for _ in range(kept)]
    runs = [chance.choice([b"1", b"2", b"99"]) for _ in range(5 * chance.randrange(3))]
    return pack([chance.choice(REPLIES), kept, chance.choice(LAYOUTS), *data, *runs])


def call(chance: random.Random, vocabulary: Vocabulary) -> bytes:
    calls = [chance.choice(vocabulary.whole) for _ in range(chance.randrange(1, 4))]
    if chance.random() < 0.2:
        calls.append(
            raw(chance.choice([["CONFIG", "SET", "maxmemory", "1"], ["EVAL", "return 1", "0"], ["MULTI"], [""]]))
        )
    parts = [part for one in calls for part in (b"%d" % len(one), *one)]
    return pack([chance.choice(RIGHTS), chance.choice([b"0", b"0", b"1", b"2", b"3"]), len(calls), *parts])


def register(chance: random.Random, _vocabulary: Vocabulary) -> bytes:
    session = chance.choice([b"fuzz", b"hooks", b"", b"a\x00b", b"other"])
    listed: list[str | int] = []
    for n in range(chance.randrange(3)):
        reader = chance.choice(["KeysReader", "CommandReader", "StreamReader", "x"])
        listed += [f"{n}-{chance.randrange(4)}", reader, "async", "", chance.choice(["answer:*", "*", ""]), "echo"]
        listed += [1, "keymiss", 0, 1, "get r 1 1"]
        if chance.random() < 0.2:
            listed[-2] = chance.choice([0, 1, 2, 10**9])  # as many commands, says it
    return pack([session, b"default", b"code", len(listed) // 11, *listed])


def words(*choices: list[bytes]) -> Callable[[random.Random, Vocabulary], bytes]:
    return lambda chance, _vocabulary: pack([chance.choice(choice) for choice in choices])


IDS = [b"0-1", b"1-2", b"hooks-1", b"", b"none"]
KINDS: list[tuple[int, Callable[[random.Random, Vocabulary], bytes]]] = [
    (64, words([b"2"], [b"1", b"x"], [b"fuzzed", b"\xff\n"])),
    *[(65, reply)] * 3,
    *[(66, tensors)] * 3,
    *[(67, call)] * 4,
    *[(68, register)] * 2,
    (69, words(IDS)),
    (70, words([b"", b"doc:", b"t"])),
    (71, words([b"notice", b"x"], [b"fuzzed \xff\x00\n", b""])),
    (72, words([b"name", b"", b"n" * 70], [b"1", b"v" * 300])),
    (73, words()),
    (74, words()),
    (75, words(SECTIONS[:12])),
    *[(76, words(SECTIONS[:12]))] * 2,
    (80, words([b"1", b"2"], [b"1"], [b"1"], [b"1"], [b"0"])),
    *[(81, done)] * 3,
]


def whole(chance: random.Random, vocabulary: Vocabulary) -> bytes:
    kind, payload = chance.choice(KINDS)
    return framed(kind, id_of(chance), payload(chance, vocabulary))


def breaking(chance: random.Random, vocabulary: Vocabulary) -> bytes:
    """Perhaps no frame, perhaps one of another kind, or with the items of none."""
    frame = bytearray(whole(chance, vocabulary))
    match chance.randrange(5):
        case 0:
            frame[chance.randrange(len(frame))] ^= 1 << chance.randrange(8)
        case 1:
            at = chance.randrange(len(frame))
            frame[at : at + chance.randrange(4)] = chance.randbytes(chance.randrange(20))
        case 2:
            items = [chance.choice(RESTS) for _ in range(chance.randrange(8))]
            return framed(chance.randrange(60, 86), id_of(chance), pack(items))
        case 3:
            return framed(chance.choice((75, 76)), id_of(chance), pack([chance.choice(SECTIONS)]))
        case _:
            return framed(chance.choice(KINDS)[0], id_of(chance), chance.randbytes(chance.randrange(30)))
    return bytes(frame)


def hang(pair: Pair) -> list[socket.socket]:
    """Clients whose requests the worker does not answer by itself."""
    replies_of(
        pair.master,
        ["DEL", "m", "t"],
        ["AI.TENSORSET", "t", "FLOAT", "1", "VALUES", "1"],
        ["AI.MODELSTORE", "m", "ONNX", "CPU", "BLOB", "file"],
    )
    clients = []
    for waiting in HANGING.strip().splitlines():
        client = socket.create_connection(("127.0.0.1", pair.master.port), PATIENCE)
        client.sendall(command(*waiting.split()))
        clients.append(client)
    return clients


def beside(chance: random.Random) -> list[bytes]:
    """Returns requests for connections, whole and not, and a slot of the page: what the other channels get."""
    requests = [
        chance.randbytes(8) + chance.choice((b"f", b"\0")) * 40,
        chance.randbytes(chance.choice((1, 47, 49, 999))),
    ]
    page = struct.pack("<II", 256 * chance.randrange(1, 64), chance.randrange(4)) + chance.randbytes(
        chance.randrange(252)
    )
    return [*requests * chance.randrange(3), page]


def sent_by(chance: random.Random, frames: bytes) -> bytes:
    """The order to send them, mostly on their own, else while a script waits and Redis reads the worker by itself."""
    order = ["RG.TRIGGER", "frames", frames, *beside(chance)]
    if chance.random() < 0.8:
        return command(*order)
    return command("EVAL", "return redis.pcall(unpack(ARGV))", "0", *order)


def play(pair: Pair, chance: random.Random, steps: int) -> int:
    vocabulary, sent = Vocabulary(chance), 0
    register_hooks(pair)
    while sent < steps:
        sent += life(pair, chance, vocabulary, min(steps - sent, chance.choice((BATCH, 4 * BATCH))))
    return sent


def life(pair: Pair, chance: random.Random, vocabulary: Vocabulary, steps: int) -> int:
    """Plays the life of one worker: it ends by a frame that breaks the stream, where one does."""
    until(lambda: pair.master.info()["worker_state"] == "ready", PATIENCE)
    clients = hang(pair)
    replies_of(pair.master, ["CLIENT", "PAUSE", "50", "WRITE"])  # writes of the worker wait then
    with socket.create_connection(("127.0.0.1", pair.master.port), PATIENCE) as connection:
        for first in range(0, steps, BATCH):
            batch = [whole(chance, vocabulary) for _ in range(min(BATCH, steps - first) - 2)]
            if first + BATCH >= steps:
                batch.append(breaking(chance, vocabulary))
            batch.append(framed(76, 0, pack([b"2"])))
            connection.sendall(sent_by(chance, b"".join(batch)))
            connection.sendall(b"".join(bent(chance, vocabulary) for _ in range(5)))
            read(connection, 6)
    for client in clients:
        client.close()
    if pair.master.info()["received_bytes"]:  # the head of a frame that never ends
        pair.master.kill_worker()
    return steps
