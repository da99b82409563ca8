"""Random scripts and calls of what functions have: each gets an answer, and the worker lives.

FUZZ_SCRIPTS says how many, 400 else.
"""

import os
from random import Random
from typing import Any

from redis import ResponseError

from tests.unit.worker_client import WorkerClient

SCRIPTS = int(os.environ.get("FUZZ_SCRIPTS", "400"))
READERS = ("KeysReader", "KeysOnlyReader", "StreamReader", "PythonReader", "ShardsIDReader", "CommandReader", "None")
STEPS = ["map", "filter", "foreach", "flatmap", "accumulate", "aggregate", "aggregateby", "groupby"]
STEPS += ["batchgroupby", "localgroupby", "count", "countby", "avg", "sort", "distinct", "limit", "collect"]
STEPS += ["repartition", "nothing"]
PLAIN = ("count", "countby", "sort", "distinct", "collect", "run", "register")  # that need no argument
VALUES = ["lambda r: r", "lambda: 1", "lambda r: 1 / 0", "lambda a, r: r", "lambda k, a, r: a", "None", "0", "-1"]
VALUES += ["'x'", "[]", "{}", "b'\\xff'", "2 ** 70", "GB", "log", "execute", "print", "runtime", "gearsFuture()"]
VALUES += ["'\\ud800'", "async_step", "RuntimeError('x')", "exit", "iter([1, 2])", "range(5)", "float('nan')"]
VALUES += ["...", "Ellipsis.x"]
NAMES = ["arg", "prefix", "convertToStr", "collect", "mode", "trigger", "batch", "duration", "onFailedPolicy"]
NAMES += ["hook", "keyprefix", "commands", "eventTypes", "keyTypes", "readValue", "fromId", "count", "noScan"]
NAMES += ["inorder", "wrong"]
LINES = ["import sys; sys.exit()", "raise SystemExit", "raise KeyboardInterrupt", "def f(:", "1 / 0", "del GB"]
LINES += ["GB = None", "async def async_step(r): return r", "execute('GET', 'x')", "log(log)", "\x00", "\ufffd"]
LINES += ["\xe9 = 1", "\tx", "return", "from shardqa.gears import *", "import redisAI", "globals().clear()"]
LINES += ["runtime._session", "open('/etc/passwd')"]
FUNCTIONS = (  # all but those that make futures, which nobody would end
    "execute", "log", "hashtag", "configGet", "gearsConfigGet", "override_reply", "flat_error", "get_command",
    "call_next", "runCoroutine", "setFutureResults", "setFutureException", "isAsyncAllow", "getGearsSession",
    "setGearsSession", "gearsCtx", "atomic", "GB", "runtime.call", "redisAI.createTensorFromValues",
    "redisAI.getTensorFromKey", "redisAI.createScriptRunner",
)  # fmt: skip
ARGUMENTS = (
    "", "'x'", "b'\\xff'", "'\\ud800'", "1", "2**70", "None", "[]", "{}", "'a' * 70000", "*['x'] * 5000", "'\\x00'",
    "float('nan')", "True", "('a', 'b')", "lambda: 1", "'GET', 'x'", "'SET', 'k', ''", "['GET', 'x']", "'warning'",
    "'INFO'", "'MULTI'", "'RG.TRIGGER', 'x'", "'AI.TENSORGET', 'x'",
)  # fmt: skip
WORDS = ("UNBLOCKING", "ID", "a", "UPGRADE", "REPLACE_WITH", "DESCRIPTION", "REQUIREMENTS", "", "\x00", "id")


def call(random: Random, name: str) -> str:
    takes = 0 if name in PLAIN else 1
    plain = [value(random) for _ in range(random.choice((takes, takes, takes, 1, 2, 3)))]
    named = {random.choice(NAMES): value(random) for _ in range(few(random))}
    return f".{name}({', '.join([*plain, *(f'{key}={value}' for key, value in named.items())])})"


def call_of_a_function(random: Random) -> str:
    """A run or a trigger whose function calls something with anything."""
    kind, wait = ("async def", random.choice(("", "await "))) if random.random() < 0.5 else ("def", "")
    called = f"{wait}{random.choice(FUNCTIONS)}({random.choice(ARGUMENTS)})"
    end = random.choice(("GB('ShardsIDReader').map(f).run()", "GB('CommandReader').map(f).register(trigger='random')"))
    return f"import redisAI\n{kind} f(r):\n    return {called}\n{end}\n"


def few(random: Random) -> int:
    return random.choice((1, 1, 2)) if random.random() < 0.15 else 0


def value(random: Random) -> str:
    return VALUES[0] if random.random() < 0.8 else random.choice(VALUES)


def script(random: Random) -> str:
    lines = [random.choice(LINES) for _ in range(few(random))]
    steps = "".join(call(random, random.choice(STEPS)) for _ in range(random.randrange(4)))
    end = random.choice(("run", "run", "run", "register", "register", ""))
    lines.append(f"GB({random.choice(READERS)!r}){steps}{call(random, end) if end else ''}")
    text = "\n".join(lines)
    if random.random() < 0.1:
        at = random.randrange(len(text))
        text = text[:at] + chr(random.randrange(1, 0x3000)) + text[at + random.randrange(4) :]
    return text


def test_every_random_script_gets_an_answer_and_the_worker_lives(worker: WorkerClient) -> None:
    worker.answer = lambda words: b"*2\r\n$1\r\n0\r\n*0\r\n" if words[:1] == [b"SCAN"] else b"$-1\r\n"
    random, kinds = Random(20), dict[str, int]()
    for number in range(SCRIPTS):
        words = [random.choice(WORDS) for _ in range(few(random))]
        if "REQUIREMENTS" in words:
            words = [*words, "not a name"]
        text = call_of_a_function(random) if number % 4 == 0 else script(random)
        text = text.encode("utf-8", "surrogatepass").decode("utf-8", "surrogateescape")
        reply: Any = worker.execute(text, *words)
        worker.request("RG.TRIGGER", "random")
        kind = "error" if isinstance(reply, ResponseError) else "OK" if reply == b"OK" else "results"
        print("REPLY", str(reply)[:70])
        kinds[kind] = kinds.get(kind, 0) + 1
        worker.seen.clear()
        assert not worker.ended, f"script {number}: {text!r}"
    assert min(kinds["error"], kinds["OK"], kinds["results"]) > SCRIPTS / 50
    assert isinstance(worker.request("RG.PYSTATS"), list)
