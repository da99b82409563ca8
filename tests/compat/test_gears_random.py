"""Random calls of what functions have, on a real node: its worker lives, and all that they register can be removed.

RANDOM_CALLS says how many, 300 else.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest
from redis import Redis, ResponseError

from tests.compat.scripts import send
from tests.nodes import Node, running_node

CALLS = int(os.environ.get("RANDOM_CALLS", "300"))
FUNCTIONS = (  # all but those that make futures, which nobody would end
    "execute", "log", "hashtag", "configGet", "gearsConfigGet", "override_reply", "flat_error", "get_command",
    "call_next", "runCoroutine", "setFutureResults", "setFutureException", "isAsyncAllow", "getGearsSession",
    "setGearsSession", "gearsCtx", "atomic", "GB", "runtime.call", "redisAI.createTensorFromValues",
    "redisAI.getTensorFromKey", "redisAI.createScriptRunner",
)  # fmt: skip
ARGUMENTS = (
    "", "'x'", "b'\\xff'", "'\\ud800'", "1", "2**70", "None", "[]", "{}", "'a' * 70000", "*['x'] * 5000", "'\\x00'",
    "float('nan')", "True", "('a', 'b')", "lambda: 1", "'GET', 'x'", "'SET', 'k', ''", "['GET', 'x']", "'warning'",
    "'{x}', 'y'", "'INFO'", "'EVAL', 'return 1', '0'", "'MULTI'", "'SUBSCRIBE', 'x'", "'BLPOP', 'x', '0'",
    "'CLIENT', 'KILL', 'TYPE', 'normal'", "'shardqa.get', 'x'", "'RG.TRIGGER', 'x'", "'AI.TENSORGET', 'x'",
)  # fmt: skip
ENDS = (
    "GB('ShardsIDReader').map(f).run()",
    "GB('CommandReader').map(f).register(trigger='random', mode='{mode}')",
    "GB('CommandReader', desc={given}).map(f).register(trigger={given})",
    "GB().map(f).register({given}, eventTypes=[{given}])",
    "GB().map(f).register('none:*', commands=[{given}])",
)


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Node]:
    with running_node(tmp_path, module_arguments=("TIMEOUT", "2000")) as node:  # some wait for what never comes
        yield node


def script(random: Random) -> str:
    call = f"{random.choice(FUNCTIONS)}({random.choice(ARGUMENTS)})"
    kind, wait = ("async def", random.choice(("", "await "))) if random.random() < 0.5 else ("def", "")
    end = random.choice(ENDS).format(
        mode=random.choice(("sync", "async", "async_local")), given=random.choice(ARGUMENTS) or "None"
    )
    return f"import redisAI\n{kind} f(r):\n    return {wait}{call}\n{end}\n"


def attempt(client: Redis, *words: str) -> Any:
    try:
        return send(client, *words)
    except ResponseError as error:
        return error


def test_no_call_ends_the_worker_and_no_registration_stays(node: Node) -> None:
    random = Random(20)
    with node.client(decode_responses=True, socket_timeout=60) as client:
        pid = client.info("shardqa")["shardqa_worker_pid"]
        for _ in range(CALLS):
            code = script(random)
            attempt(client, "RG.PYEXECUTE", code, "ID", "random", "UPGRADE")
            attempt(client, "RG.TRIGGER", "random")
            assert client.info("shardqa")["shardqa_worker_pid"] == pid, code
            for entry in send(client, "RG.DUMPREGISTRATIONS"):
                assert send(client, "RG.UNREGISTER", entry[1]) == "OK", code
