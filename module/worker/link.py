"""The worker's end of the socketpair.

One thread at a time reads (reading.py); any thread may send, under a lock, whole frames, blocking: the module
never stops reading, so a send waits for bytes only. The module closing its end, or a malformed frame, ends the read.
"""

import socket
import threading
from collections.abc import Iterable, Iterator

from shardqa.module.worker import frames
from shardqa.module.worker.frames import Frame, Type

RECEIVE = 256 * 1024  # bytes asked of the socket at once: many small frames come with one system call


class Link:
    def __init__(self, sock: socket.socket) -> None:
        self._socket = sock
        self._sending = threading.Lock()

    def send(self, type: Type, id: int, payload: bytes) -> None:
        """Sends one frame. Raises PayloadTooLarge; OSError when the module is gone."""
        frame = frames.encode(type, id, payload)
        with self._sending:
            self._socket.sendall(frame)

    def send_list(self, type: Type, id: int, items: Iterable[bytes | bytearray | memoryview | str]) -> None:
        encoded = (item.encode("utf-8", "surrogateescape") if isinstance(item, str) else item for item in items)
        self.send(type, id, frames.pack(encoded))

    def frames(self) -> Iterator[Frame]:
        """Frames until the module closes its end. Raises MalformedFrame."""
        size = frames.HEADER.size
        data = b""  # received and not yet a whole frame
        while received := self._socket.recv(RECEIVE):
            data = data + received if data else received
            at = 0
            while len(data) - at >= size:
                length, type, id = frames.decode_header(data[at : at + size])
                end = at + size + length
                if end > len(data):
                    if length > RECEIVE:
                        data, at, end = self._rest(data[at:], size + length), 0, size + length
                        if len(data) < end:
                            return
                    else:
                        break
                yield Frame(type, id, data[at + size : end])
                at = end
            data = data[at:]

    def _rest(self, start: bytes, length: int) -> bytes:
        """A long frame that begins with `start`, whole; shorter when the socket ends."""
        frame = bytearray(length)
        frame[: len(start)] = start
        view, got = memoryview(frame), len(start)
        while got < length and (received := self._socket.recv_into(view[got:])):
            got += received
        return bytes(view[:got])
