"""A script as users write it, with all that a type checker has to know: checked by test_stubs.py and by `make lint`."""

import asyncio
import threading
from typing import Any

from shardqa.gears import (
    GB,
    GearsBuilder,
    atomic,
    call_next,
    createFuture,
    execute,
    flat_error,
    gearsConfigGet,
    gearsCtx,
    gearsFuture,
    getGearsSession,
    hashtag,
    log,
    override_reply,
    runCoroutine,
    runtime,
    setFutureResults,
)


def words(record: dict[str, Any]) -> list[str]:
    return str(record["value"]).split()


async def remember(record: dict[str, Any]) -> dict[str, Any]:
    future = createFuture()
    setFutureResults(future, await runtime.call("GET", record["key"]))
    override_reply(await future)
    await GB("KeysOnlyReader").count().run("doc:*", count=100)
    return record


def move(record: list[str]) -> int:
    with atomic():
        execute("SET", f"{{{hashtag()}}}:last", record[1])
        return int(execute("INCR", "moves"))


def later(record: list[str]) -> gearsFuture:
    future, session = gearsFuture(), getGearsSession()

    def work() -> None:
        with gearsCtx(session):
            future.continueRun(execute("PING"))

    threading.Thread(target=work).start()
    return future


def stamp(record: list[str]) -> str:
    if len(record) < 2:
        flat_error("nothing to stamp")
    return str(call_next(*record[1:], "seen", execute("TIME")[0]))


def start() -> None:
    log("registered", level="debug")
    runCoroutine(asyncio.sleep(0), delay=float(gearsConfigGet("delay", 0)))


GearsBuilder(desc="words").flatmap(words).countby().sort(reverse=False).run("line:*")
GB("StreamReader").foreach(remember).register("in:*", batch=10, onFailedPolicy="retry", mode="async_local")
GB("CommandReader").map(move).filter(lambda moved: moved > 1).register(trigger="move", mode="sync")
GB("CommandReader").map(later).aggregate(0, lambda a, r: a + 1, lambda a, b: a + b).register(trigger="later")
GB("CommandReader").map(stamp).register(hook="hset", keyprefix="person:*", onRegistered=start)
