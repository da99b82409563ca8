"""The process of an interpreter: it runs the scripts and functions of sessions whose packages clash with the worker's.

The worker's own modules are imported first, and with the packages that they need; then those that the folder has in
another version are forgotten, so that scripts, and what they import, get the folder's. The main thread reads, calls
run on a pool, coroutines in the loop. A function finds RedisGears' names as in the worker: most of them ask the worker.
"""

from __future__ import annotations

import asyncio
import builtins
import importlib
import inspect
import os
import pickle
import sys
from collections import Counter
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from contextvars import Context, copy_context
from dataclasses import dataclass
from functools import partial
from itertools import count, islice
from pathlib import Path
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any, NoReturn

from redis import ResponseError

from shardqa.worker.activity import Activity
from shardqa.worker.calls import Command
from shardqa.worker.frames import Frame, Type
from shardqa.worker.gears.interpreters.exchange import End, Reference, receivers, senders
from shardqa.worker.gears.pipeline import function_threads
from shardqa.worker.gears.pipeline.function_threads import current_or_begun_by
from shardqa.worker.gears.pipeline.futures import GearsFuture, record_of
from shardqa.worker.gears.pipeline.plan import RunPlan
from shardqa.worker.gears.pipeline.run import FlatError, current, describe, enter
from shardqa.worker.gears.pipeline.steps import GearsStep, Kind, is_async
from shardqa.worker.gears.registrations.registrations import Registration
from shardqa.worker.gears.sessions import pickling, script_functions, script_module
from shardqa.worker.gears.sessions.packages import packages_in
from shardqa.worker.link import Link
from shardqa.worker.runtime import Runtime
from shardqa.worker.threads import Breakable, Threads

POLL = 0.2  # seconds until a function that asks is told that it was cancelled
CALLS = 64  # that run at once; the worker bounds them further
SENT_AS = {Kind.ACCUMULATE: "fold", Kind.LOCALGROUPBY: "fold", Kind.FILTER: "look", Kind.FOREACH: "look"}
PLAIN = ("builtins", "collections", "copyreg", "_codecs", "shardqa")  # of what travels as a name
ASKED = ("execute", "atomic", "hashtag", "log", "override_reply", "configGet", "gearsConfigGet", "get_command",
         "call_next", "isAsyncAllow", "isInAtomicBlock", "shardReaderCallback")  # fmt: skip
VALUES = (complex, range, slice, bytearray, Counter)  # that pickle copies
HELD = (list, dict, set, tuple)
NO_REDIS_AI = (
    "redisAI is not there beside packages in another version than the worker's; execute('AI.MODELEXECUTE', …) is"
)


def serve(sock: Any, folder: str, stall: float) -> NoReturn:
    process = Process(Link(sock), stall)
    pickling.pickler()  # with the worker's cloudpickle
    tops = {name for name in packages_in(Path(folder)) if name not in sys.stdlib_module_names}
    for name in [name for name in sys.modules if name.partition(".")[0] in tops]:
        del sys.modules[name]
    sys.path.insert(0, folder)
    importlib.invalidate_caches()
    function_threads.install()
    script_module.install()
    process.install_modules()
    process.serve()


class Call(Breakable):
    """A call of the worker; `current()` of the code that it runs. The worker keeps its context until this is gone."""

    def __init__(self, process: Process, id: int, session: FarSession) -> None:
        super().__init__()
        self.id, self.session = id, session
        self._dropped = process.dropped
        self.task: Future[None] | None = None

    def __del__(self) -> None:
        self._dropped.append(-self.id)


class Kept(Reference):
    """An object of the worker: an atomic block, a run that was begun."""

    def __init__(self, process: Process, number: int, session: FarSession) -> None:
        super().__init__(process, number)
        self._process, self._session = process, session

    def __enter__(self) -> None:
        self._process.ask(self._session, f"{self.number}.__enter__")

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        self._process.ask(self._session, f"{self.number}.__exit__", None, error and str(error), None)

    def __await__(self) -> Generator[Any, Any, Any]:
        wait = partial(self._process.ask, self._session, f"{self.number}.result")
        return (yield from asyncio.get_running_loop().run_in_executor(self._process.pool, wait).__await__())


class FarRuntime:
    """`runtime` of a script: what it gives and takes is plain there."""

    def __init__(self, ask: Callable[..., Any], pool: ThreadPoolExecutor) -> None:
        self._ask, self._pool = ask, pool

    def __getattr__(self, name: str) -> Any:
        if name not in vars(Runtime) or name.startswith("_"):
            raise AttributeError(name)
        if name in ("watch", "run_model", "shown"):
            raise RuntimeError(f"runtime.{name} is not there beside packages in another version than the worker's")
        if not inspect.iscoroutinefunction(getattr(Runtime, name)):
            return lambda *args, **options: self._ask(f"runtime.{name}", *args, **options)

        async def asked(*args: Any, **options: Any) -> Any:
            ask = partial(copy_context().run, self._ask, f"runtime.{name}", *args, **options)
            return await asyncio.get_running_loop().run_in_executor(self._pool, ask)

        return asked


class FarSession:
    """A session as the builder and functions see it here; the worker has the true one."""

    def __init__(self, process: Process, number: int, id: str, user: str) -> None:
        self.number, self.id, self.user = number, id, user
        self.is_new = False
        self.globals: dict[str, Any] = {}
        self._process = process
        self.names = self._names()

    def ask(self, what: str, *args: Any, **options: Any) -> Any:
        return self._process.ask(self, what, *args, **options)

    def execute(self, command: Command) -> Any:
        return self.ask("session.execute", command)

    @property
    def registrations(self) -> list[Registration]:
        return list(self.ask("session.registrations"))

    def note(self, text: str) -> None:
        self.ask("session.note", text)

    def next_id(self, registration: Registration) -> str:
        return str(self.ask("session.next_id", registration))

    def run(self, plan: RunPlan) -> Any:
        return self.ask("session.run", plan)

    def register(self, registration: Registration, on_registered: Callable[[], Any] | None) -> None:
        self.ask("session.register", registration, on_registered)

    def watch(self, _watch: Any) -> None:
        raise RuntimeError("runtime.watch is not there beside packages in another version than the worker's")

    def _names(self) -> dict[str, Any]:
        def asking(name: str) -> Callable[..., Any]:
            return lambda *args, **options: self.ask(name, *args, **options)

        return {
            **script_functions.of_builder(self),  # type: ignore[arg-type]
            **script_functions.own(self._process.threads, asking("log")),
            **{name: asking(name) for name in ASKED},
            "runtime": FarRuntime(self.ask, self._process.pool),
        }


class Process(End):
    def __init__(self, link: Link, stall: float) -> None:
        super().__init__()
        self._link = link
        self._activity = Activity()
        self.threads = Threads(stall, self._activity)
        self.pool = ThreadPoolExecutor(CALLS, "call")
        self._sessions: dict[int, FarSession] = {}
        self._calls: dict[int, Call] = {}
        self._ids = count(1)
        self._questions: dict[int, Future[bytes]] = {}
        self._holds_loop = 0  # id of the call whose coroutine asked last: the loop stands still until it is answered
        self.threads.start()

    def serve(self) -> NoReturn:
        self._link.send_list(Type.READY, 0, ())
        while True:
            self._link.wait()
            frames = self._link.receive()
            if frames is None:
                os._exit(0)
            for frame in frames:
                self._handle(frame)

    def _handle(self, frame: Frame) -> None:
        if frame.type is Type.CALLED:
            self._questions.pop(frame.id).set_result(frame.payload)
        elif frame.type is Type.REQUEST:
            self.pool.submit(Context().run, self._answer, frame)
        elif (call := self._calls.get(frame.id)) is not None:  # CANCEL
            call.interrupt()
            if call.task is not None:
                call.task.cancel()

    def drop(self, numbers: list[int]) -> None:
        super().drop(numbers)
        for number in numbers:
            self._sessions.pop(-number, None)

    def ask(self, session: FarSession, what: str, *args: Any, **options: Any) -> Any:
        """Has the worker do something for the call that runs. Raises what that raised, and Cancelled."""
        id, reply, call = next(self._ids), Future[bytes](), current()
        self._questions[id] = reply
        number = call.id if isinstance(call, Call) else 0
        head = pickle.dumps((self.news(), number, session.number))
        self._link.send_list(Type.CALL, id, [head, self.encode((what, args, options))])
        if self.threads.in_loop():
            self._holds_loop = number
        while not reply.done():
            with suppress(TimeoutError):
                reply.result(POLL)
        if self.threads.in_loop():
            self._holds_loop = 0
        kind, value = self.decode(reply.result(), session)
        if kind:
            raise _error(kind, value)
        return value

    # ---- calls ----

    def _answer(self, frame: Frame) -> None:
        head, body = frame.items()
        news, (number, id, user, is_new), verb, hold, around = pickle.loads(head)
        self.drop(news)
        session = self._sessions.get(number) or self._sessions.setdefault(number, FarSession(self, number, id, user))
        session.is_new = is_new
        call = self._calls[frame.id] = Call(self, frame.id, session)
        enter(call)  # type: ignore[arg-type]
        try:
            with call.running(self._activity):
                args = self.decode(body, session)
                if verb == "await" and self._holds_loop in around:
                    raise RuntimeError("a coroutine can't call a hook that awaits; make itself a plain function")
                if verb == "await":
                    call.task = asyncio.run_coroutine_threadsafe(self._awaited(call, *args), self.threads.loop)
                    if call.cancelled:  # meanwhile: whoever did that found no task
                        call.task.cancel()
                    return
                value = VERBS[verb](session, *args)
            self._reply(call, (True, _Sent(self.keep(value)) if hold and isinstance(value, HELD) else value))
        except BaseException as error:  # noqa: BLE001 - sys.exit of a function must not end the process
            self._reply(call, (False, describe(error)))

    async def _awaited(self, call: Call, what: Any, args: Sequence[Any] | None = None) -> None:
        try:
            value = what if args is None else what(*args)
            if isinstance(value, Future):
                value = asyncio.wrap_future(value)
            if inspect.isawaitable(value):
                value = await self.threads.stepping(value, call.name)
            self._reply(call, (True, value))
        except BaseException as error:  # noqa: BLE001 - as above
            self._reply(call, (False, describe(error)))

    def _reply(self, call: Call, reply: tuple[bool, Any]) -> None:
        try:
            payload = self.encode(reply)
        except Exception as error:  # noqa: BLE001 - of a class of the user's
            payload = self.encode((False, describe(error)))
        del self._calls[call.id]
        self._link.send_list(Type.REPLY, call.id, [pickle.dumps(self.news()), payload])

    # ---- values ----

    def reference(self, number: int, kind: str, session: FarSession) -> Any:
        return Kept(self, number, session)

    def packed(self, data: bytes, session: FarSession) -> Any:
        return pickling.unpack(session, data)  # type: ignore[arg-type]

    def reduced(self, value: Any) -> Any:
        if isinstance(value, Kept):
            return receivers, (value.number,)
        if isinstance(value, _Sent):
            return senders, (value.number, value.kind)
        if isinstance(value, GearsStep):
            function = self._sent(value.function, SENT_AS.get(value.kind, ""))
            return GearsStep, (value.kind, function, self._sent(value.extractor), value.numbers)
        is_name = isinstance(value, type | FunctionType | BuiltinFunctionType)
        module = str(value.__module__ if is_name else type(value).__module__).partition(".")[0]
        is_plain = module in PLAIN if is_name else module == "shardqa" or type(value) in VALUES
        if is_plain and not hasattr(value, "__await__"):
            return NotImplemented
        return senders, (self.keep(record_of(value) if isinstance(value, GearsFuture) else value), _kind_of(value))

    def _sent(self, function: Any, kind: str = "") -> Any:
        if function is None:
            return None
        own = "coroutine function" if is_async(function) else kind or "function"
        return _Sent(self.keep(function), own)

    def install_modules(self) -> None:
        """Installs `redisgears`, whose functions act for the session that runs; `__main__` has its names, too."""
        module, main = ModuleType("redisgears"), sys.modules["__main__"]
        for name, own in {**{name: name for name in ASKED}, **script_functions.REDISGEARS}.items():
            function = _of_session(name, own)
            setattr(main, name, function)
            if name in script_functions.REDISGEARS:
                setattr(module, name, function)
        sys.modules["redisgears"] = module
        sys.modules["redisAI"] = _NoRedisAi("redisAI")


@dataclass(frozen=True, slots=True)
class _Sent:
    """An object that stays here, though its kind could travel."""

    number: int
    kind: str = "object"


class _NoRedisAi(ModuleType):
    def __getattr__(self, name: str) -> Any:
        raise ImportError(NO_REDIS_AI) if not name.startswith("__") else AttributeError(name)


def _of_session(name: str, own: str) -> Callable[..., Any]:
    def function(*args: Any, **options: Any) -> Any:
        call = current_or_begun_by()
        if call is None:
            raise RuntimeError(script_functions.OUTSIDE)
        with script_functions.in_context(call):
            return call.session.names[own](*args, **options)  # type: ignore[attr-defined]

    function.__module__, function.__name__, function.__qualname__ = "redisgears", name, name
    return function


def _kind_of(value: Any) -> str:
    if hasattr(value, "__await__") or inspect.isawaitable(value):
        return "awaitable"
    if callable(value) and not isinstance(value, type):
        return "coroutine function" if is_async(value) else "function"
    return "object"


def _error(kind: str, text: str) -> Exception:
    if kind != "ResponseError":
        return FlatError(text) if kind == "FlatError" else getattr(builtins, kind, RuntimeError)(text)
    theirs = getattr(sys.modules.get("redis"), kind, ResponseError)  # of the redis that the session has
    both = (ResponseError,) if theirs is ResponseError else (ResponseError, theirs)
    return type(kind, both, {})(text)  # type: ignore[no-any-return]


VERBS: dict[str, Callable[..., Any]] = {
    "script": script_functions.run_code,
    "call": lambda _, function, args: function(*args),
    "look": lambda _, function, record: (function(record), record),
    "str": lambda _, value: str(value),
    "bool": lambda _, value: bool(value),
    "iter": lambda _, value: iter(value),
    "next": lambda _, items, length: list(islice(items, length)),
    "fetch": lambda _, _function, values: values,
    "pack": pickling.dumped,
}
"""What the worker may want of a session, and what answers."""
