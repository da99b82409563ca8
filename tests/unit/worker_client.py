"""The module's side of the socket, for tests: starts a real worker process and speaks frames with it."""

import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import hiredis
from redis import ResponseError

from shardqa.worker import frames
from shardqa.worker.calls import CHECK
from shardqa.worker.frames import Frame, Type
from shardqa.worker.link import Link
from tests.module.arguments import module_arguments

NODE = "a" * 40
PATIENCE = 20  # seconds a test waits for a frame before it fails
Item = bytes | str


def greeting(arguments: Sequence[str]) -> list[str]:
    """The words of HELLO that name the module's arguments, with these in place of their defaults."""
    values = {argument.hello: argument.default for argument in module_arguments() if argument.hello}
    values |= dict(zip(arguments[::2], arguments[1::2], strict=True))
    return [str(word) for pair in values.items() for word in pair]


def ok(command: list[bytes]) -> bytes:
    return b"+OK\r\n"


def awaited(link: Link) -> list[Frame] | None:
    """The frames that come next; None at the end."""
    link.wait()
    return link.receive()


class WorkerClient:
    """`answer` gives the RESP of one command a function calls; frames that nobody awaited are kept in `seen`."""

    def __init__(
        self,
        folder: Path,
        *,
        role: str = "master",
        clustered: bool = False,
        config: Sequence[str] = (),
        answer: Callable[[list[bytes]], bytes] = ok,
    ) -> None:
        self.answer = answer
        self.seen: list[Frame] = []
        self.rights: list[str] = []  # on whose behalf the CALL frames are, in order
        self.log = folder / "worker.log"
        self.pid, self._socket = self._spawn()
        self.link = Link(self._socket)
        self.ended = False  # the process was reaped
        self._id = 0
        self._news = threading.Condition()
        self._silent = False  # the worker closed its end
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self.send(Type.HELLO, str(frames.VERSION), NODE, role, str(int(clustered)), "7000", *greeting(config))

    def _spawn(self) -> tuple[int, socket.socket]:
        ours, theirs = socket.socketpair()
        assert theirs.fileno() > 3  # dup2 onto itself would leave it to be closed at exec
        actions = [
            (os.POSIX_SPAWN_OPEN, 2, str(self.log), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600),
            (os.POSIX_SPAWN_DUP2, theirs.fileno(), 3),
        ]
        command = [sys.executable, "-I", "-m", "shardqa.worker"]
        pid = os.posix_spawn(sys.executable, command, dict(os.environ), file_actions=actions)
        theirs.close()
        return pid, ours

    def send(self, type: Type, *items: Item, id: int = 0) -> None:
        self.link.send_list(type, id, items)

    def start(self) -> list[bytes]:
        """START; returns READY's items."""
        self.send(Type.START)
        return self.wait(lambda f: f.type is Type.READY).items()

    @contextmanager
    def together(self) -> Iterator[None]:
        """Everything that is sent meanwhile reaches the worker at once."""
        os.kill(self.pid, signal.SIGSTOP)
        yield
        os.kill(self.pid, signal.SIGCONT)

    def ask(self, type: Type, *items: Item) -> int:
        """Sends a frame that wants a reply; returns its id."""
        self._id += 1
        self.send(type, *items, id=self._id)
        return self._id

    def reply(self, id: int) -> Any:
        """The reply to `ask`: RESP as hiredis decodes it (an error as exception object), or TENSORS as its items."""
        frame = self.wait(lambda f: f.id == id and f.type in (Type.REPLY, Type.TENSORS))
        return frame.items() if frame.type is Type.TENSORS else decode(frame.payload)

    def request(self, *words: Item, user: str = "default") -> Any:
        return self.reply(self.ask(Type.REQUEST, user, *words))

    def execute(self, code: str, *words: Item, user: str = "default") -> Any:
        return self.request("RG.PYEXECUTE", code, *words, user=user)

    def register(self, code: str) -> str:
        """Runs a script that registers one thing; returns the registration's id."""
        reply = self.execute(code)
        assert reply == b"OK", reply
        return self.wait(lambda f: f.type is Type.REGISTER).items()[4].decode()

    def miss(self, registration: str, key: Item) -> Any:
        return self.reply(self.ask(Type.MISS, "default", registration, key, b"GET", key))

    def wait(self, is_it: Callable[[Frame], bool]) -> Frame:
        """The first frame of this kind, taken out of `seen`."""
        until = time.monotonic() + PATIENCE
        with self._news:
            while True:
                for frame in self.seen:
                    if is_it(frame):
                        self.seen.remove(frame)
                        return frame
                if self._silent or not self._news.wait(until - time.monotonic()):
                    raise AssertionError(f"no such frame came; the worker's log: {self.log.read_text()}")

    def of(self, type: Type) -> list[Frame]:
        with self._news:
            return [frame for frame in self.seen if frame.type is type]

    def wait_log(self, part: str) -> str:
        """The text of a LOG frame that holds `part`."""
        return self.wait(lambda f: f.type is Type.LOG and part.encode() in f.payload).items()[1].decode()

    def leave(self) -> int:
        """Waits until the worker ends by itself; returns its exit status."""
        _, status = os.waitpid(self.pid, 0)
        self.ended = True
        self._reader.join(PATIENCE)
        self._socket.close()
        return os.waitstatus_to_exitcode(status)

    def close(self) -> int:
        """Closes the socket; returns the exit status."""
        self._socket.shutdown(socket.SHUT_RDWR)
        return self.leave()

    def _read(self) -> None:
        try:
            while (arrived := awaited(self.link)) is not None:
                for frame in arrived:
                    self._take(frame)
        except OSError:
            pass  # the worker was killed
        with self._news:
            self._silent = True
            self._news.notify_all()

    def _take(self, frame: Frame) -> None:
        if frame.type is Type.CALL:
            self._call(frame)
            return
        with self._news:
            self.seen.append(frame)
            self._news.notify_all()

    def _call(self, frame: Frame) -> None:
        """Answers every command of a CALL."""
        rights, flags, count, *rest = frame.items()
        self.rights.append(rights.decode())
        replies = b""
        for _ in range(int(count)):
            length = int(rest[0])
            replies += b"+OK\r\n" if flags == CHECK else self.answer(rest[1 : 1 + length])
            rest = rest[1 + length :]
        self.link.send(Type.CALLED, frame.id, replies)


def decode(raw: bytes) -> Any:
    reader = hiredis.Reader(replyError=ResponseError)
    reader.feed(raw)
    return reader.gets()
