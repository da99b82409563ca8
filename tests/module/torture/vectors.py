"""AI.* and RG.* commands with any arguments, pipelined; among them whole ones, and whole ones with a word changed, so
that the others meet values."""

import random
from collections.abc import Iterator
from typing import Any

from tests.module.servers import command

from .pair import Pair, Pipes  # noqa: TID251 (this package is tests/module)

BATCH = 250  # commands of one pipeline
WHOLE = 400  # good commands that a round draws from


def words_of(text: str) -> list[str]:
    return text.split()


KEYS = ["t", "u", "v", "m", "n", "s", "plain", "hash", "", "{a}b", "k" * 300, "\xff\x00\r\n"]
NUMBERS = ["0", "1", "-1", "2", "3", "1e5", "4294967296", "9223372036854775807", "-9223372036854775808", "x", "", "1.5"]
WORDS = words_of("""
FLOAT DOUBLE INT8 INT16 INT32 INT64 UINT8 UINT16 BOOL STRING VALUES BLOB META ONNX TORCH TF TFLITE CPU CPU:0
GPU TAG BATCHSIZE MINBATCHSIZE MINBATCHTIMEOUT PADDED INPUTS OUTPUTS TIMEOUT RESETSTAT SOURCE ENTRY_POINTS KEYS ARGS
$ LOAD PERSIST ROUTING |> echo misses nobody f ID UPGRADE REPLACE_WITH UNBLOCKING REQUIREMENTS CLUSTER GET
BACKENDSPATH MODEL_CHUNK_SIZE LOADBACKEND AI.MODELEXECUTE AI.MODELRUN AI.SCRIPTEXECUTE AI.TENSORSET
AI.TENSORGET *
""")
NAMES = words_of("""
AI.TENSORSET AI.TENSORGET AI.MODELSTORE AI.MODELSET AI.MODELGET AI.MODELDEL AI.MODELEXECUTE AI.MODELRUN
AI._MODELSCAN AI._SCRIPTSCAN AI.INFO AI.CONFIG AI.SCRIPTSTORE AI.SCRIPTSET AI.SCRIPTGET AI.SCRIPTDEL
AI.SCRIPTEXECUTE AI.SCRIPTRUN AI.DAGEXECUTE AI.DAGEXECUTE_RO AI.DAGRUN AI.DAGRUN_RO RG.PYEXECUTE RG.TRIGGER
RG.TRIGGERONKEY RG.DUMPREGISTRATIONS RG.UNREGISTER RG.CLEARREGISTRATIONSSTATS RG.PAUSEREGISTRATIONS
RG.UNPAUSEREGISTRATIONS RG.DUMPEXECUTIONS RG.GETEXECUTION RG.GETRESULTS RG.GETRESULTSBLOCKING RG.DROPEXECUTION
RG.ABORTEXECUTION RG.CONFIGGET RG.CONFIGSET RG.PYDUMPSESSIONS RG.PYDUMPREQS RG.PYSTATS RG.PYLOGS RG.PYPROFILE
RG.INFOCLUSTER RG.REFRESHCLUSTER RG._PEER RG._REGISTER RG._UNREGISTER shardqa.get
shardqa.hook shardqa.hookread HGETALL SET GET DEL COPY RENAME HSET
UNLINK OBJECT DUMP PERSIST MULTI EXEC DISCARD
""")
# without EXPIRE: a key that goes between two digests is no fault
SELDOM = ["FLUSHALL", "INFO", "SWAPDB", "RANDOMKEY"]

Words = list[bytes]


def likely(chance: random.Random) -> list[str]:
    """A command that is right where its keys hold what it wants."""
    key, other, third = (chance.choice(KEYS[:7]) for _ in range(3))
    number = str(chance.randrange(5))
    run = f"AI.MODELEXECUTE m INPUTS 1 {other} OUTPUTS 1 {third}"
    forms = [
        f"AI.TENSORSET {key} FLOAT {number} VALUES 1 2",
        f"AI.TENSORSET {key} INT8 2 BLOB ab",
        f"AI.TENSORSET {key} DOUBLE 2 2 VALUES 1 2 3 4",
        f"AI.TENSORSET {key} STRING 2 VALUES a b",
        f"AI.MODELSTORE m ONNX CPU TAG v BATCHSIZE {number} BLOB file",
        f"AI.MODELSTORE m ONNX CPU BATCHSIZE 4 PADDED {number} a b BLOB file",
        f"AI.MODELSET {key} ONNX CPU BLOB file",
        "AI.SCRIPTSTORE s CPU ENTRY_POINTS 2 f g SOURCE source",
        f"AI.SCRIPTSET {key} CPU TAG v SOURCE source",
        f"AI.MODELGET {key} META BLOB",
        f"AI.SCRIPTGET {key} META SOURCE",
        f"AI.TENSORGET {key} META VALUES",
        f"AI.TENSORGET {key} BLOB",
        run,
        f"{run} TIMEOUT 500",
        f"AI.MODELRUN m INPUTS {other} OUTPUTS {third}",
        f"AI.SCRIPTEXECUTE s f INPUTS 1 {other} ARGS 1 a KEYS 1 {key} OUTPUTS 1 {third}",
        f"AI.SCRIPTRUN s f INPUTS {other} $ {key} OUTPUTS {third}",
        f"AI.DAGEXECUTE LOAD 1 {other} PERSIST 1 {third} |> {run} |> AI.TENSORGET {third} VALUES",
        f"AI.DAGEXECUTE PERSIST 2 {key} {third} |> AI.TENSORSET {key} FLOAT 1 |> AI.SCRIPTEXECUTE s f INPUTS 1 {key} OUTPUTS 1 {third}",  # noqa: E501
        f"AI.DAGEXECUTE_RO LOAD 2 {key} {other} TIMEOUT 500 |> AI.TENSORGET {key} |> AI.TENSORGET {other} META",
        f"AI.DAGRUN LOAD 1 {other} |> AI.MODELRUN m INPUTS {other} OUTPUTS {third} |> AI.TENSORGET {third} BLOB",
        f"AI.INFO {key}",
        f"EVAL return{{redis.pcall(unpack(ARGV))}} 0 AI.TENSORGET {key}",
        f"COPY {key} {other} REPLACE",
        f"RENAME {key} {other}",
        f"SET {key} x",
        f"GET answer:{number}",
        f"DEL {key}",
        f"RG.TRIGGER echo {number}",
        f"RG.TRIGGERONKEY echo {key}",
        f"HSET hooked:{number} f v",
        f"HGETALL caused:{number}",
        f"shardqa.hook HSET {key} f v",
        f"shardqa.hook shardqa.hook shardqa.hook SET {key} v",
        f"EVAL return{{redis.pcall(unpack(ARGV))}} 0 RG.TRIGGER raw {number}",
        f"shardqa.hookread MGET {key} {other}",
        f"EVAL return{{redis.pcall(unpack(ARGV))}} 0 HSET hooked:{number} f v",
    ]
    return chance.choice(forms).split(" ")


def bulk(word: bytes) -> bytes:
    return b"$%d\r\n%b\r\n" % (len(word), word)


def raw(words: list[str]) -> Words:
    return [word.encode("latin-1") for word in words]


class Vocabulary:
    """Words and commands that the random commands of one round are made of, as RESP."""

    def __init__(self, chance: random.Random) -> None:
        odd = [chance.randbytes(chance.randrange(40)) for _ in range(40)]
        long = [b"x" * chance.randrange(100_000) for _ in range(2)]
        plain = [*raw(KEYS) * 2, *raw(NUMBERS) * 2, *raw(WORDS)]
        self.words = [bulk(word) for word in (*plain, *odd, *long)]
        self.weights = [*[100] * len(plain), *[20] * len(odd), *[1] * len(long)]
        names = [*NAMES * 20, *SELDOM]
        self.names = [bulk(name.encode()) for name in names]
        self.whole = [raw(likely(chance)) for _ in range(WHOLE)]
        self.ready = [command(*words) for words in self.whole]


def wild(chance: random.Random, vocabulary: Vocabulary, count: int) -> Iterator[bytes]:
    names = chance.choices(vocabulary.names, k=count)
    lengths = chance.choices(range(10), k=count)
    words, at = chance.choices(vocabulary.words, vocabulary.weights, k=sum(lengths)), 0
    for name, length in zip(names, lengths, strict=True):
        yield b"*%d\r\n%b%b" % (length + 1, name, b"".join(words[at : at + length]))
        at += length


def bent(chance: random.Random, vocabulary: Vocabulary) -> bytes:
    """A good command with a word replaced, put in, left out or doubled."""
    words = [bulk(word) for word in chance.choice(vocabulary.whole)]
    at = chance.randrange(1, len(words) + 1)
    match chance.randrange(4):
        case 0:
            words[at:at] = chance.choices(vocabulary.words, vocabulary.weights)
        case 1:
            words[at : at + 1] = chance.choices(vocabulary.words, vocabulary.weights)
        case 2:
            del words[at : at + 1]
        case _:
            words[at:at] = words[at - 1 : at]
    return b"*%d\r\n%b" % (len(words), b"".join(words))


def batch(chance: random.Random, vocabulary: Vocabulary) -> list[bytes]:
    commands = list(wild(chance, vocabulary, BATCH * 2 // 5))
    commands += chance.choices(vocabulary.ready, k=BATCH * 2 // 5)
    commands += [bent(chance, vocabulary) for _ in range(BATCH - len(commands))]
    chance.shuffle(commands)
    return commands


def register_hooks(pair: Pair) -> None:
    """Registers hooks of misses, commands and events, and triggers that a script waits for."""
    pair.master.register("hooks", ["hooks-1", "KeysReader", "answer:*", "", ["keymiss"], [], ["get r 1 1"]])
    pair.master.register(
        "commands",
        ["commands-1", "CommandReader", "hooked:*", "", [], [], ["hset w 1 1"]],
        ["commands-2", "KeysReader", "caused:*", "", ["keymiss"], [], ["hgetall r 1 1", "mget r 1 -1"]],
    )
    triggers: list[list[Any]] = [
        [f"sync-{name}", "CommandReader", "", name, [], [], [], "sync"] for name in ("raw", "frames")
    ]
    pair.master.register("sync", *triggers)


def play(pair: Pair, chance: random.Random, steps: int) -> int:
    vocabulary = Vocabulary(chance)
    register_hooks(pair)
    batches = [batch(chance, vocabulary) for _ in range(max(1, steps // BATCH))]
    with Pipes(pair.master) as pipes:
        pipes.send(batches)
    return len(batches) * BATCH
