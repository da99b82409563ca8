"""The worker's end of an interpreter: a process that has the packages of one list alone, and runs its sessions' code.

Scripts and functions run there, one call after another as the worker needs them; builder, registrations, runs, steps
and commands stay here. In the steps stand `FarFunction`s, in the records `Far` objects where what a function gave is
no plain value. What a function asks for (`execute`, `log`, …) is done here, in the context of the call that it came in.

A call waits in its thread, so deadlines, turns and rights are those of any function. An interpreter that ends without
being told to ends the worker, which then comes back with its sessions.
"""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import json
import os
import pickle
import socket
import sys
import threading
import weakref
from collections import deque
from collections.abc import Generator, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from itertools import count
from typing import Any, Protocol

from redis import RedisError

from shardqa.worker.frames import Frame, Type
from shardqa.worker.gears.interpreters.exchange import RECEIVING, End, Reference, arrived, receivers, senders
from shardqa.worker.gears.pipeline.run import FlatError
from shardqa.worker.link import Link
from shardqa.worker.threads import Cancelled, Threads

POLL = 0.2  # seconds until a call that waits is told that it was cancelled
ASKED = 32  # questions of functions that are answered at once
CHUNK = 100  # records that a reader's generator gives at once
UNUSED = 2  # interpreters that stay though no session has functions in them: those used last


class Session(Protocol):
    """A session, as far as it matters here (sessions/session.py)."""

    id: str
    is_new: bool
    names: Mapping[str, Any]

    @property
    def user(self) -> str: ...

    @property
    def origin(self) -> Session: ...

    def interpreter_of(self, base: str = "") -> Interpreter | None: ...


_around: contextvars.ContextVar[tuple[int, ...]] = contextvars.ContextVar("around", default=())
"""The ids of the calls for which something is done here, outermost first: what that calls in turn is inside them."""


class Interpreters:
    """The interpreters of this worker, by folder of packages. Any thread."""

    def __init__(self, channel: socket.socket | None, threads: Threads) -> None:
        self._channel = channel
        self._threads = threads
        self._lock = threading.Lock()
        self._by_folder: weakref.WeakValueDictionary[str, Interpreter] = weakref.WeakValueDictionary()
        self._used: deque[Interpreter] = deque(maxlen=UNUSED)  # last

    def of(self, folder: str) -> Interpreter:
        """Returns the interpreter of a folder, begun where there is none. Raises RuntimeError."""
        with self._lock:
            there = self._by_folder.get(folder)
            if there is None:
                if self._channel is None:
                    raise RuntimeError("packages in another version than the worker's need a process; there is none")
                there = self._by_folder[folder] = Interpreter(self._channel, folder, self._threads)
            if there in self._used:
                self._used.remove(there)
            self._used.append(there)
            return there


class Interpreter(End):
    def __init__(self, channel: socket.socket, folder: str, threads: Threads) -> None:
        super().__init__()
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        with theirs:  # starter.py reads this
            socket.send_fds(channel, [json.dumps([folder, threads.stall]).encode()], [theirs.fileno()])
        self.folder = folder
        self._threads = threads
        self._link = Link(ours)
        self._ids = count(1)
        self._calls: dict[int, Future[bytes]] = {}
        self._contexts: dict[int, tuple[contextvars.Context, threading.Lock]] = {}  # of calls, by id
        self._names: weakref.WeakKeyDictionary[Session, int] = weakref.WeakKeyDictionary()
        self._sessions: weakref.WeakValueDictionary[int, Session] = weakref.WeakValueDictionary()
        self._naming = threading.Lock()
        self._answers = ThreadPoolExecutor(ASKED, "interpreter")
        self._has_begun = False
        own = weakref.ref(self)
        threading.Thread(target=_read, args=(own, self._link, folder), name="interpreter", daemon=True).start()
        weakref.finalize(self, _close, ours)

    # ---- calls ----

    def call(self, session: Session, verb: str, *args: Any, hold: bool = False) -> Any:
        """Has the interpreter do something. Raises FlatError with the text of what that raised, and Cancelled."""
        id, reply = self._begin(session, verb, args, hold)
        was_cancelled = False
        while True:
            try:
                payload = reply.result(POLL)
                break
            except TimeoutError:
                continue
            except Cancelled:  # it has the thread, and its deadline, until its function has ended over there
                was_cancelled = True
                self._link.send(Type.CANCEL, id, b"")
        if was_cancelled:
            raise Cancelled
        return self._result(session, payload)

    async def call_async(self, session: Session, verb: str, *args: Any) -> Any:
        """Does the same as `call`, in the loop."""
        id, reply = self._begin(session, verb, args, False)
        try:
            payload = await asyncio.wrap_future(reply)
        except asyncio.CancelledError:
            self._link.send(Type.CANCEL, id, b"")
            raise
        return self._result(session, payload)

    def _begin(self, session: Session, verb: str, args: tuple[Any, ...], hold: bool) -> tuple[int, Future[bytes]]:
        id, reply = next(self._ids), Future[bytes]()
        reply.set_running_or_notify_cancel()
        whose = (self._number_of(session), session.origin.id, session.user, session.origin.is_new)
        head = pickle.dumps((self.news(), whose, verb, hold, _around.get()))
        self._calls[id], self._contexts[id] = reply, (contextvars.copy_context(), threading.Lock())
        self._link.send_list(Type.REQUEST, id, [head, self.encode(args)])
        return id, reply

    def _number_of(self, session: Session) -> int:
        """Returns the number under which the interpreter has the variables of a session's script."""
        with self._naming:
            origin = session.origin
            number = self._names.get(origin)
            if number is None:
                number = self._names[origin] = next(self._ids)
                self._sessions[number] = origin
                weakref.finalize(origin, self.dropped.append, -number)
            return number

    def _result(self, session: Session, payload: bytes) -> Any:
        is_value, value = self.decode(payload, session)
        if not is_value:
            raise FlatError(value)
        return value

    # ---- what it sends; reading thread ----

    def handle(self, frame: Frame) -> None:
        if frame.type is Type.READY:
            self._has_begun = True
        elif frame.type is Type.REPLY:
            news, payload = frame.items()
            self.drop(pickle.loads(news))
            self._calls.pop(frame.id).set_result(payload)
        else:
            self._answers.submit(self._answer, frame)

    def drop(self, numbers: list[int]) -> None:
        super().drop(numbers)
        for number in numbers:
            self._contexts.pop(-number, None)

    def ended(self) -> None:
        if self._has_begun:
            print(f"the interpreter of {self.folder} has ended, and the worker with it", file=sys.stderr, flush=True)
            os._exit(1)
        for reply in self._calls.values():
            reply.set_exception(FlatError("ERR the process of this script's packages can't start; the log says why"))

    def _answer(self, frame: Frame) -> None:
        head, body = frame.items()
        news, call, number = pickle.loads(head)
        self.drop(news)
        session = self._sessions.get(number)
        try:
            if session is None:
                raise RuntimeError("its session is there no more")
            what, args, options = self.decode(body, session)
            if what.endswith(".result"):  # it waits for others, which may ask meanwhile
                value = self._done(session, what, args, options)
            else:
                context, lock = self._contexts.get(call) or (contextvars.Context(), threading.Lock())
                with lock:
                    value = context.run(self._done_within, call, session, what, args, options)
            payload = self.encode((None, value))
        except BaseException as error:  # noqa: BLE001 - the function gets it
            payload = self.encode((_kind_of(error), str(error)))
        self._link.send(Type.CALLED, frame.id, payload)

    def _done_within(self, call: int, *ask: Any) -> Any:
        if call and call not in _around.get():
            _around.set((*_around.get(), call))
        return self._done(*ask)

    def _done(self, session: Session, what: str, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
        """Does what a function asks for: `<name>` of a script, `session.<name>`, `runtime.<name>`, `<kept>.<name>`."""
        owner, _, name = what.rpartition(".")
        if not owner:
            function = session.names[name]
        elif owner.isdigit():
            function = getattr(self.kept(int(owner)), name)
        else:
            function = getattr(session if owner == "session" else session.names["runtime"], name)
        value = function(*args, **options) if callable(function) else function
        return self._threads.wait(value) if inspect.iscoroutine(value) else value

    # ---- values ----

    def reference(self, number: int, kind: str, session: Session) -> Far:
        return FAR[kind](self, number, session)

    def reduced(self, value: Any) -> Any:
        if isinstance(value, Far):
            return value.recipe_for(self)
        if hasattr(value, "__await__") or hasattr(value, "__enter__"):  # a run that was begun, an atomic block
            return senders, (self.keep(value), "")
        return NotImplemented


class Far(Reference):
    """An object of an interpreter. One that came from another shard has no number, but is pickled."""

    kind = "object"

    def __init__(self, end: Interpreter, number: int, session: Session, data: bytes = b"") -> None:
        super().__init__(end, number)
        self.interpreter, self.session, self.data = end, session, data

    def recipe_for(self, interpreter: Interpreter) -> Any:
        if self.interpreter is not interpreter:
            raise RuntimeError("what one list of requirements made can't go to the functions of another")
        return (receivers, (self.number,)) if self.number else (arrived, (self.data,))

    def call(self, verb: str, *args: Any, hold: bool = False) -> Any:
        return self.interpreter.call(self.session, verb, self, *args, hold=hold)

    def __str__(self) -> str:
        return str(self.call("str"))

    __repr__ = __str__

    def __bool__(self) -> bool:
        return bool(self.call("bool"))

    def __iter__(self) -> Iterator[Any]:
        items = self.call("iter")
        while chunk := items.call("next", CHUNK):
            yield from chunk

    def __reduce__(self) -> Any:
        try:
            data = self.data or self.call("pack")
        except FlatError as error:
            raise pickle.PicklingError(str(error)) from None
        return _far, (self.interpreter.folder.partition("-")[0], self.kind, data)


class FarFunction(Far):
    kind = "function"
    holds = False  # what it gives stays there: an accumulator would come and go with each record

    def __call__(self, *args: Any) -> Any:
        return self.call("call", args, hold=self.holds)

    def fetched(self, values: list[Any]) -> list[Any]:
        """Returns values that it gave; plain ones come as they are."""
        return list(self.call("fetch", values))


class FarFold(FarFunction):
    kind = "fold"
    holds = True


class FarLook(FarFunction):
    """A filter or foreach: the next steps see what it changes in its record."""

    kind = "look"

    def __call__(self, record: Any) -> Any:
        value, after = self.call("look", record)
        if isinstance(record, dict):
            record.clear()
            record.update(after)
        elif isinstance(record, list):
            record[:] = after
        return value


class FarCoroutineFunction(FarFunction):
    kind = "coroutine function"

    async def __call__(self, *args: Any) -> Any:
        return await self.interpreter.call_async(self.session, "await", self, args)


class FarAwaitable(Far):
    kind = "awaitable"

    def __await__(self) -> Generator[Any, Any, Any]:
        return self.interpreter.call_async(self.session, "await", self).__await__()


FAR: dict[str, type[Far]] = {
    one.kind: one for one in (Far, FarFunction, FarFold, FarLook, FarCoroutineFunction, FarAwaitable)
}


def _far(base: str, kind: str, data: bytes) -> Far:
    """Makes an object that another shard sent, or that was stored."""
    session: Session = RECEIVING.get()
    interpreter = session.interpreter_of(base)
    if interpreter is None:
        raise RuntimeError("its session's packages are not there; send the session again with UPGRADE")
    return FAR[kind](interpreter, 0, session, data)


def _kind_of(error: BaseException) -> str:
    """Returns the name of the class that stands for an error over there."""
    if isinstance(error, RedisError):
        return "ResponseError"
    return type(error).__name__ if type(error).__module__ == "builtins" else "RuntimeError"


def _read(own: weakref.ref[Interpreter], link: Link, folder: str) -> None:
    while True:
        link.wait()
        frames, interpreter = link.receive(), own()
        if interpreter is None:
            return
        if frames is None:
            interpreter.ended()
            return
        for frame in frames:
            interpreter.handle(frame)
        del interpreter


def _close(sock: socket.socket) -> None:
    with suppress(OSError):  # it has ended already
        sock.shutdown(socket.SHUT_RDWR)
