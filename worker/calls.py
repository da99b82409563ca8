"""Redis commands sent through the module: CALL frames and their CALLED replies.

Any thread may call. A thread that waits (`run`) sleeps on a future that the reading thread resolves, so a
reading thread itself must never wait here; the event loop may (RedisGears' `execute` is synchronous there too)
and has `run_async` for code that wants to go on.
"""

import asyncio
import itertools
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import hiredis
from redis import ResponseError

from shardqa.worker import frames
from shardqa.worker.frames import Frame, Type
from shardqa.worker.link import Link
from shardqa.worker.socket_threads import is_reading

Argument = bytes | str | int | float
Command = Sequence[Argument]
MAX_CALLS = 4096  # commands of one frame: one frame is one tick of Redis, which must stay short


RUN, CHECK = b"0", b"1"  # flags of a CALL; from 2 on the number of a section
FIRST_SECTION = 2

# The section in which this task or thread is (docs/frames.md): while it is open Redis serves nobody else. 0: none.
section: ContextVar[int] = ContextVar("section", default=0)


@dataclass(frozen=True, slots=True)
class Rights:
    """The one on whose behalf a command is sent. The module knows the users of its requests and sessions by itself."""

    # 'r<request id>', 's<session id>', or empty: the worker itself, which may only look at the cluster. 'q<session
    # id>': as 's', and the session's own registrations and watches hear no events of it. 'n<session id>': as 's', and
    # no KeysReader does.
    context: str
    user: str  # for people to read

    @classmethod
    def of_request(cls, id: int, user: str) -> "Rights":
        return cls(f"r{id}", user)

    @classmethod
    def of_session(cls, id: str, user: str) -> "Rights":
        return cls(f"s{id}", user)

    def quiet(self) -> "Rights":
        """A session's: the same, of which its registrations hear nothing. A request's stay."""
        return Rights(f"q{self.context[1:]}", self.user) if self.context.startswith("s") else self

    def nested(self) -> "Rights":
        """A session's: the same, and no KeysReader hears of what they write."""
        return Rights(f"n{self.context[1:]}", self.user)


WORKER = Rights("", "")


def follow(access: str, pattern: str) -> Command:
    """Makes a command that is checked, not run: whether its user may read ('r') or write ('w') all keys of a prefix."""
    return ("RG._FOLLOW", access, pattern)


class Calls:
    def __init__(self, link: Link) -> None:
        self._link = link
        self._ids = itertools.count(1)
        self._sections = itertools.count(FIRST_SECTION)
        self._waiting: dict[int, tuple[int, Callable[[bytes], object]]] = {}  # id -> (commands, whoever wants the RESP)

    def called(self, frame: Frame) -> None:
        """The reading thread hands over a CALLED frame."""
        waiting = self._waiting.pop(frame.id, None)
        if waiting is None:
            raise frames.MalformedFrame(f"CALLED for the unknown call {frame.id}")
        waiting[1](frame.payload)

    def lock(self) -> int:
        """Redis serves this thread alone until `unlock`, for at most a second. Blocks until it does."""
        number = next(self._sections)
        self._ask(Type.LOCK, number)
        return number

    def unlock(self, number: int) -> None:
        """Raises redis.ResponseError when the section was ended at its deadline."""
        self._ask(Type.UNLOCK, number)

    def _ask(self, type: Type, number: int) -> None:
        reply: Future[bytes] = Future()
        id = next(self._ids)
        self._waiting[id] = (1, reply.set_result)
        self._link.send_list(type, id, [str(number)])
        first(parse(reply.result(), 1))

    def run(self, rights: Rights, commands: Sequence[Command], flags: bytes = RUN) -> list[Any]:
        """Replies of all commands, run in one tick; an error reply is an item. Blocks the calling thread.

        CHECK as flags: none is run, see `check`.
        """
        assert not is_reading(), "a reading thread would wait for itself"
        reply: Future[bytes] = Future()
        self._send(rights, commands, reply.set_result, flags)
        return parse(reply.result(), len(commands))

    async def run_async(self, rights: Rights, commands: Sequence[Command]) -> list[Any]:
        return await self._sent(rights, commands, RUN)

    async def check(self, rights: Rights, commands: Sequence[Command]) -> list[Any]:
        """Whether these rights let each command run on its keys: OK, or the error. None is run."""
        return await self._sent(rights, commands, CHECK)

    async def raw(self, rights: Rights, command: Command) -> bytes:
        """The reply of one command as RESP."""
        return await self._replied(rights, [command], RUN)

    async def _sent(self, rights: Rights, commands: Sequence[Command], flags: bytes) -> list[Any]:
        return parse(await self._replied(rights, commands, flags), len(commands))

    async def _replied(self, rights: Rights, commands: Sequence[Command], flags: bytes) -> bytes:
        loop = asyncio.get_running_loop()
        future: asyncio.Future[bytes] = loop.create_future()

        def resolve(raw: bytes) -> None:
            if not future.done():  # its waiter may have been cancelled
                future.set_result(raw)

        self._send(rights, commands, lambda raw: loop.call_soon_threadsafe(resolve, raw), flags)
        return await future

    def _send(
        self, rights: Rights, commands: Sequence[Command], on_reply: Callable[[bytes], object], flags: bytes = RUN
    ) -> None:
        if len(commands) > MAX_CALLS:
            raise ValueError(f"{len(commands)} commands in one call, at most {MAX_CALLS}; split them")
        if not all(commands):  # the module would take the frame for a broken worker's
            raise ValueError("a command without a word; name one, like execute('PING')")
        if flags == RUN and section.get():
            flags = b"%d" % section.get()
        items = [argument_bytes(rights.context), flags, b"%d" % len(commands)]
        for command in commands:
            items.append(b"%d" % len(command))
            items += [
                word
                if type(word) is bytes
                else word.encode("utf-8", "surrogateescape")
                if type(word) is str
                else argument_bytes(word)
                for word in command
            ]
        payload = frames.pack(items)
        id = next(self._ids)
        self._waiting[id] = (len(commands), on_reply)
        try:
            self._link.send(Type.CALL, id, payload)
        except (frames.PayloadTooLarge, OSError):
            del self._waiting[id]
            raise


def parse(raw: bytes, count: int) -> list[Any]:
    """`count` replies of a CALLED payload, as hiredis decodes them. Raises MalformedFrame."""
    reader = hiredis.Reader(protocolError=frames.MalformedFrame, replyError=ResponseError, notEnoughData=frames)
    reader.feed(raw)
    replies = [reader.gets() for _ in range(count)]
    if any(reply is frames for reply in replies) or reader.has_data():
        raise frames.MalformedFrame(f"CALLED payload of {len(raw)} bytes does not hold {count} replies")
    return replies


def first(replies: list[Any]) -> Any:
    """The reply of a single command, raising what is an error."""
    (reply,) = whole(replies)
    return reply


def whole(replies: list[Any]) -> list[Any]:
    """The replies of several commands, raising the first that is an error."""
    for reply in replies:
        if isinstance(reply, Exception):
            raise reply
    return replies


def argument_bytes(argument: Argument) -> bytes:
    match argument:
        case bytes():
            return argument
        case str():
            return argument.encode("utf-8", "surrogateescape")
        case bool():
            return str(argument).encode()
        case int():
            return b"%d" % argument
        case float():
            return repr(argument).encode()
        case bytearray() | memoryview():
            return bytes(argument)
        case _:
            return str(argument).encode("utf-8", "surrogateescape")  # as RedisGears does: numpy numbers, paths, …
