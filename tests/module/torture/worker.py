"""The worker of the nodes under torture: the fake one, which answers all it is asked without remembering it, and sends
whatever frames it is given. Started by the module like fake_worker.py."""

import socket
import struct
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[3]))

from tests.module.fake_worker import CALL, DAG_DONE, HEADER, REPLY, TENSORS, FakeWorker, pack, unpack

PLACEHOLDERS = 1 << 62  # ids from here on stand for those of requests that hang
MICROSECONDS = struct.pack("<Q", 1)

Tensor = tuple[bytes, bytes]  # layout, data


class TortureWorker(FakeWorker):
    def __init__(self) -> None:
        super().__init__()
        self.hung: list[int] = []

    def note(self, type: int, id: int, payload: bytes) -> None:
        """It would fill the memory."""

    def on_request(self, id: int, payload: bytes) -> None:
        try:
            super().on_request(id, payload)
        except (TypeError, ValueError) as error:  # orders that random words made
            self.send(REPLY, id, b"-ERR %s\r\n" % type(error).__name__.encode())

    def do_hang(self, id: int, *_words: bytes) -> None:
        self.hung.append(id)

    def on_cancel(self, id: int, _payload: bytes) -> None:
        if id in self.hung:
            self.hung.remove(id)

    def do_frames(self, id: int, frames: bytes, *beside: bytes) -> None:
        """Sends them, with the ids of requests that hang in place of the placeholders, then answers."""
        data, at = bytearray(frames), 0
        hung = [*self.hung, id]
        while at + HEADER.size <= len(data):
            length, _type, _flags, _version, number = HEADER.unpack_from(data, at)
            if number >= PLACEHOLDERS:
                struct.pack_into("<Q", data, at + 8, hung[number % len(hung)])
            at += HEADER.size + length
        self.disturb(*beside)
        self.socket.sendall(data)
        self.do_raw(id, b"+OK\r\n")

    def disturb(self, *beside: bytes) -> None:
        """All but the last are requests for connections; that is bytes of the page, behind their place."""
        *requests, change = beside
        for request in requests:
            with suppress(BlockingIOError):
                self.peers.send(request, socket.MSG_DONTWAIT)
        (place,) = struct.unpack_from("<I", change)
        self.page.memory[place : place + len(change) - 4] = change[4:]

    def on_sync(self, id: int, payload: bytes) -> None:
        number, _user, _command, verb, *words = unpack(payload)
        try:
            if verb == b"frames":
                self.send(CALL, id, pack([f"r{id}", number, 1, 3, "SET", "plain", "of a section"]))
                self.do_frames(id, *words)
            else:
                super().on_sync(id, payload)
        except (IndexError, TypeError, ValueError) as error:  # orders that random words made
            self.send(REPLY, id, b"-ERR %s\r\n" % type(error).__name__.encode())

    def on_hook(self, id: int, payload: bytes) -> None:
        if b"hooked:hang" in unpack(payload):
            self.do_hang(id)
        else:
            super().on_hook(id, payload)

    def on_miss(self, id: int, payload: bytes) -> None:
        if b"answer:hang" in unpack(payload):
            self.do_hang(id)
        else:
            super().on_miss(id, payload)

    def on_modelload(self, id: int, payload: bytes) -> None:
        if unpack(payload)[-1].startswith(b"HANG"):
            self.do_hang(id)
        else:
            super().on_modelload(id, payload)

    def on_execute(self, id: int, payload: bytes) -> None:
        head, *data = unpack(payload)
        _model, timeout, count, layout = head.split(b" ", 3)
        if timeout == b"1999":
            self.do_hang(id)
        else:
            self.send(TENSORS, id, pack([MICROSECONDS, *copies(list(tensors(layout, data)), int(count))]))

    def on_script(self, id: int, payload: bytes) -> None:
        head, *rest = unpack(payload)
        _model, _timeout, count, layout = [*head.split(b" ", 3), b""][:4]
        wanted = len(layout.split(b";")) if layout else 0
        data = rest[len(rest) - wanted :] if wanted else []
        self.send(TENSORS, id, pack([MICROSECONDS, *copies(list(tensors(layout, data)), int(count))]))

    def on_dag(self, id: int, payload: bytes) -> None:
        """Every model and script copies its first input to all outputs."""
        items = iter(unpack(payload))
        timeout = next(items)
        if timeout == b"1999":
            self.do_hang(id)
            return
        scope = dict(loaded(items) for _ in range(int(next(items))))
        operations = int(next(items))
        replies = b"".join(self.operation(items, scope) for _ in range(operations))
        kept = [scope.get(next(items), (b"FLOAT 1", bytes(4))) for _ in range(int(next(items)))]
        layout = b";".join(layout for layout, _ in kept)
        reply = b"*%d\r\n%b" % (operations, replies)
        self.send(DAG_DONE, id, pack([reply, len(kept), layout, *(data for _, data in kept)]))

    def operation(self, items: Iterator[bytes], scope: dict[bytes, Tensor]) -> bytes:
        kind = next(items)
        if kind == b"set":
            name = next(items)
            scope[name] = (next(items), next(items))
        elif kind == b"get":
            name, _format = next(items), next(items)
            return b"$%d\r\n%b\r\n" % (len(name), name)
        else:
            next(items)
            if kind == b"script":
                _function, _list, _counted = next(items), next(items), next(items)
                for _ in range(2):
                    words(items)
            inputs, outputs = words(items), words(items)
            first = scope[inputs[0]] if inputs else (b"FLOAT 1", bytes(4))
            scope.update(dict.fromkeys(outputs, first))
        return b"+OK\r\n"


def loaded(items: Iterator[bytes]) -> tuple[bytes, Tensor]:
    name, layout, data = next(items), next(items), next(items)
    return name, (layout, data)


def words(items: Iterator[bytes]) -> list[bytes]:
    return [next(items) for _ in range(int(next(items)))]


def tensors(layout: bytes, data: list[bytes]) -> Iterator[Tensor]:
    return zip(layout.split(b";"), data, strict=False) if layout else iter(())


def copies(inputs: list[Tensor], count: int) -> list[bytes]:
    """The inputs, repeated until there are as many outputs as are wanted."""
    made = [(inputs or [(b"FLOAT 1", bytes(4))])[n % max(1, len(inputs))] for n in range(count)]
    return [b";".join(layout for layout, _ in made), *(data for _, data in made)]


if __name__ == "__main__":
    TortureWorker().run()
