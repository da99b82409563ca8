"""The names a script finds: GearsBuilder, execute, hashtag, log, override_reply, …, and `runtime`."""

import asyncio
import copy
import functools
import sys
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Thread
from typing import Any, Protocol

from redis import ResponseError

from shardqa.worker import resp
from shardqa.worker.calls import Argument, Calls, section
from shardqa.worker.gears.pipeline.function_threads import current_or_begun_by
from shardqa.worker.gears.pipeline.futures import GearsFuture, PlainFuture
from shardqa.worker.gears.pipeline.readers import text
from shardqa.worker.gears.pipeline.run import FlatError, Run, current, enter
from shardqa.worker.gears.pipeline.steps import GearsStep, Kind
from shardqa.worker.gears.pipeline.worker_log import WorkerLog
from shardqa.worker.gears.registrations.registrations import TIMER, Registration
from shardqa.worker.gears.sessions.builder import Builder
from shardqa.worker.gears.sessions.script_module import in_use, of_script
from shardqa.worker.gears.sessions.session import Session
from shardqa.worker.gears.settings import WorkerSettings
from shardqa.worker.nodes import Cluster
from shardqa.worker.runtime import Runtime
from shardqa.worker.threads import Threads

REDISGEARS = {"executeCommand": "execute", "GearsBuilder": "GB", "GB": "GB", "gearsCtx": "gearsCtx",
              "atomicCtx": "atomic", "registerTimeEvent": "registerTE", "getMyHashTag": "hashtag", "log": "log",
              "config_get": "configGet", "callNext": "call_next", "getCommand": "get_command",
              "overrideReply": "override_reply", "isAsyncAllow": "isAsyncAllow", "isInAtomicBlock": "isInAtomicBlock",
              "getGearsSession": "getGearsSession", "setGearsSession": "setGearsSession",
              "GearsFuture": "gearsFuture"}  # fmt: skip
"""The names of the module `redisgears`, and those that a script has for the same."""
OUTSIDE = "redisgears reaches Redis only from inside a script or a function that runs"
IMPORTED = {"asyncio": asyncio, "copy": copy, "Future": asyncio.Future, "Thread": Thread}


@dataclass(frozen=True, slots=True)
class ScriptHost:
    """The worker's parts that the functions of all scripts use."""

    calls: Calls
    threads: Threads
    cluster: Cluster
    settings: WorkerSettings
    log: WorkerLog
    runtime_of: Callable[[Session], Runtime]


def common(host: ScriptHost) -> dict[str, Any]:
    """Returns the functions that do not depend on whose script it is, by their names in RedisGears."""

    def log(message: object, level: str = "notice") -> None:
        host.log(str(message), level)

    def config_get(name: str) -> Any:
        return host.settings.get(name)

    def gears_config_get(name: str, default: Any = None) -> Any:
        value = host.settings.get(name)
        return default if value is None else value

    return {
        **own(host.threads, log),
        "hashtag": host.cluster.hashtag,
        "log": log,
        "override_reply": override_reply,
        "configGet": config_get,
        "gearsConfigGet": gears_config_get,
        "get_command": get_command,
        "call_next": call_next,
        "isAsyncAllow": is_async_allow,
        "isInAtomicBlock": is_in_atomic_block,
        "shardReaderCallback": lambda: iter([host.cluster.node if host.cluster.enabled else "1"]),
    }


def own(threads: Threads, log: Callable[..., None]) -> dict[str, Any]:
    """Returns the functions that need no worker: they work in the process that runs the script."""

    def run_coroutine(coroutine: Any, f: Callable[[Any, Any], Any] | None = None, delay: float = 0) -> None:
        """Starts a coroutine in the loop after `delay` seconds; then f(result, error)."""
        threads.spawn(run_later(coroutine, f, delay, log))

    return {
        "flat_error": flat_error,
        "flatError": flat_error,
        "runCoroutine": run_coroutine,
        "gearsFuture": gears_future,
        "createFuture": PlainFuture,
        "setFutureResults": lambda future, result: future.set(result),
        "setFutureException": lambda future, error: future.fail(error),
        "getGearsSession": current,
        "setGearsSession": enter,
    }


def of_builder(session: Session) -> dict[str, Any]:
    """Returns what builds and registers functions of a session, and what the globals of each module have."""
    builder = functools.partial(Builder, session)
    return {
        "__name__": "__main__",
        "__builtins__": __builtins__,
        "GearsBuilder": builder,
        "GB": builder,
        "gearsCtx": context_of(builder),
        "registerTE": functools.partial(register_timer, session),
    }


def context_of(builder: Callable[..., Builder]) -> Callable[..., Any]:
    """Returns gearsCtx, in RedisGears the builder of a reader, and `with gearsCtx(getGearsSession()):`."""

    def gears_context(session: Run | str | None = None, *arguments: Any) -> Any:
        return builder(session, *arguments) if isinstance(session, str) else in_context(session)

    return gears_context


def namespace(host: ScriptHost, session: Session) -> dict[str, Any]:
    """Returns the globals of a session's script."""

    def execute(*command: Argument) -> Any:
        """Sends one Redis command; strings come back as str. Raises redis.ResponseError."""
        if command and not isinstance(command[0], str | bytes):
            raise TypeError(f"the given command must be a string, not {type(command[0]).__name__}")
        return text(session.execute(command))

    return {
        **of_builder(session),
        **common(host),
        "execute": execute,
        "atomic": functools.partial(Atomic, host.calls),
        "runtime": host.runtime_of(session),
    }


class Scripted(Protocol):
    """A session, or what stands for it in an interpreter."""

    names: Mapping[str, Any]
    globals: dict[str, Any]


def run_code(session: Scripted, code: str, file: str) -> None:
    """Runs a script with globals of its own. Raises whatever it raises."""
    with in_use(session.names):
        session.globals = old_names(session.names) | dict(session.names)
        exec(compile(code, file, "exec"), session.globals)


def old_names(names: Mapping[str, Any]) -> dict[str, Any]:
    """Returns older names of RedisGears' interpreter: other spellings, and modules that it had imported."""
    module = sys.modules.get("redisgears")  # none where a script runs outside a worker
    spellings = {"Log": names["log"], "ConfigGet": names["configGet"], "GearsFuture": names["gearsFuture"]}
    spellings["GearsConfigGet"] = names["gearsConfigGet"]
    return {**spellings, **IMPORTED, "redisgears": module, "rg": module}


def gears_future() -> GearsFuture:
    """Suspends the record of the step that returns it."""
    if current_or_begun_by() is None or of_script() is not None:
        why = "Future object can only be created inside certain execution steps: in the function that returns it"
        raise RuntimeError(f"{why}; createFuture() makes one for any coroutine")
    return GearsFuture()


def is_in_atomic_block() -> bool:
    """Returns whether Redis now serves this function alone."""
    return section.get() != 0


def is_async_allow() -> bool:
    """Returns False in a trigger inside a transaction or a script, which wait for it; else True."""
    run = current()
    return run is None or not run.holds


class Atomic:
    """`with atomic():` no other client's command comes between those of the block; Redis ends it after a second."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls
        self._number = 0  # 0: an outer block is open, or it was not entered

    def __enter__(self) -> None:
        if not section.get():
            self._number = self._calls.lock()
            section.set(self._number)

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        if not self._number:
            return
        number, self._number = self._number, 0
        section.set(0)
        try:
            self._calls.unlock(number)
        except ResponseError:
            if error is None:  # else that one tells what happened
                raise


def flat_error(message: object) -> Any:
    """Ends the function with this text as its error, without file and line."""
    raise FlatError(str(message))


@contextmanager
def in_context(session: Run | None = None) -> Iterator[None]:
    """`with gearsCtx(getGearsSession()):` in a function's thread: calls in the block act for that function."""
    before = current()
    enter(before if session is None else session)
    try:
        yield
    finally:
        enter(before)


def override_reply(value: Any) -> None:
    """Makes `value` the reply of the command this function runs for: bytes, str, list, int, None; '-ERR …' fails it."""
    run = current()
    if run is None or not run.command:
        raise RuntimeError(
            "override_reply works only in a function that runs for a client's command, on the shard that got it: "
            "there alone with mode='async_local'"
        )
    run.reply = resp.lined(value)


def call_next(*arguments: Argument) -> Any:
    """Runs the next hook of the hooked command, or the command itself, with these arguments; returns its reply."""
    run = current()
    if run is None or run.hook is None:
        raise RuntimeError(
            "Can not get CommandHook ctx: call_next works only in a function that hooks a command "
            "(register(hook='hset'))"
        )
    return run.hook.next(run, arguments)


def get_command() -> list[str | bytes]:
    """Returns the command that this function runs for, name first; empty for none."""
    run = current()
    return [] if run is None else list(run.command)


async def run_later(
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


class _Call:
    """A step that calls a function without a record."""

    def __init__(self, callback: Any) -> None:
        self._callback = callback

    def __call__(self, _record: Any) -> Any:
        return self._callback()


def register_timer(session: Session, seconds: Any, callback: Any, key: str | None = None) -> None:
    """Makes `callback` run every so many seconds, until `key` is deleted: registerTE. Raises TypeError.

    It is a registration, so it is kept, replicated and removed as others are; timers.py runs it.
    """
    if not callable(callback):
        raise TypeError(f"registerTE: callback must be a function, not {type(callback).__name__}")
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or seconds <= 0:
        raise TypeError(f"registerTE: time argument must be a long or a float above 0, not {seconds!r}")
    steps = (GearsStep(Kind.FOREACH, _Call(callback)),)
    registration = Registration("", session.id, session.user, TIMER, "async_local", None, steps, convert=False)
    registration.prefix, registration.period = key or "", float(seconds)
    registration.id = session.next_id(registration)
    session.register(registration, None)
    if key is not None and session.is_new:
        session.execute(("SET", key, registration.id))
