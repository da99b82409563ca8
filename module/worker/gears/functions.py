"""The names a script finds: GearsBuilder, execute, hashtag, log, override_reply, …, and `runtime`."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from shardqa.module.worker import resp
from shardqa.module.worker.calls import Argument
from shardqa.module.worker.gears.builder import Builder
from shardqa.module.worker.gears.execution import current
from shardqa.module.worker.gears.readers import text
from shardqa.module.worker.gears.runtime import SessionRuntime

if TYPE_CHECKING:
    from shardqa.module.worker.gears.sessions import Session


def namespace(session: Session) -> dict[str, Any]:
    """The globals of a session's script."""
    builder = functools.partial(Builder, session)
    shard = session.shard

    def execute(*command: Argument) -> Any:
        """One Redis command; strings come back as str. Raises redis.ResponseError."""
        return text(shard.execute(session.user, command))

    def log(message: object, level: str = "notice") -> None:
        shard.log(str(message), level)

    def config_get(name: str, default: Any = None) -> Any:
        return shard.config.get(name.lower(), default)

    def run_coroutine(coroutine: Any, f: Callable[[Any, Any], Any] | None = None, delay: float = 0) -> None:
        """Starts a coroutine in the loop after `delay` seconds; then f(result, error)."""
        shard.threads.spawn(_run_later(coroutine, f, delay, log))

    return {
        "__name__": "__main__",
        "__builtins__": __builtins__,
        "GearsBuilder": builder,
        "GB": builder,
        "execute": execute,
        "hashtag": shard.cluster.hashtag,
        "log": log,
        "override_reply": override_reply,
        "flat_error": resp.FlatError,
        "configGet": config_get,
        "gearsConfigGet": config_get,
        "get_command": get_command,
        "runCoroutine": run_coroutine,
        "isAsyncAllow": lambda: True,  # no function here ever holds Redis' thread
        "isInAtomicBlock": lambda: False,
        "runtime": SessionRuntime(session),
    }


def override_reply(value: Any) -> None:
    """Makes `value` the reply of the command this function runs for: bytes and str as they are, list, int, None."""
    execution = current()
    if execution is None or not execution.command:
        raise RuntimeError("override_reply works only in a function that runs for a client's command")
    execution.reply = value


def get_command() -> list[str | bytes]:
    """The command this function runs for, name first; empty outside one."""
    execution = current()
    return [] if execution is None else list(execution.command)


async def _run_later(
    coroutine: Awaitable[Any], then: Callable[[Any, Any], Any] | None, delay: float, log: Callable[[object, str], None]
) -> None:
    result = error = None
    try:
        if delay:
            await asyncio.sleep(delay)
        result = await coroutine
    except BaseException as failure:  # noqa: BLE001 - sys.exit of a function must not end the worker
        error = failure
        if then is None:
            log(f"a coroutine of runCoroutine failed: {failure!r}", "warning")
    if then is not None:
        then(result, error)
