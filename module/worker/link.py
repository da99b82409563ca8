"""The worker's end of the socketpair.

One thread (the process' main thread) reads; any thread may send, under a lock, whole frames, blocking: the module
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
        buffer = bytearray()
        while True:
            at = 0
            while len(buffer) - at >= frames.HEADER.size:
                length, type, id = frames.decode_header(memoryview(buffer)[at : at + frames.HEADER.size])
                start = at + frames.HEADER.size
                if len(buffer) - start < length:
                    break
                at = start + length
                yield Frame(type, id, bytes(memoryview(buffer)[start:at]))
            if at:
                del buffer[:at]
            if not self._fill(buffer):
                return

    def _fill(self, buffer: bytearray) -> bool:
        """Appends what the socket has; False at its end."""
        data = self._socket.recv(max(RECEIVE, self._missing(buffer)))
        buffer += data
        return bool(data)

    @staticmethod
    def _missing(buffer: bytearray) -> int:
        """Bytes the frame at the head of the buffer still lacks (at most 16 MiB asked at once)."""
        if len(buffer) < frames.HEADER.size:
            return 0
        length, _, _ = frames.decode_header(memoryview(buffer)[: frames.HEADER.size])
        return min(length + frames.HEADER.size - len(buffer), 16 << 20)
