"""The worker's end of the socketpair.

One thread at a time reads (socket_threads.py), others may wait to; any thread may send, under a lock, whole frames,
blocking: the module never stops reading, so a send waits for bytes only. The module closing its end, or a malformed
frame, ends the read.
"""

import select
import socket
import threading
from collections.abc import Iterable

from shardqa.worker import frames
from shardqa.worker.frames import Frame, Type

RECEIVE = 256 * 1024  # bytes asked of the socket at once: many small frames come with one system call
ENDED = select.EPOLLRDHUP | select.EPOLLHUP | select.EPOLLERR
WAKING = select.EPOLLIN | ENDED | select.EPOLLET  # edge triggered: what arrives wakes one waiting thread, not all


class Link:
    def __init__(self, sock: socket.socket) -> None:
        self._socket = sock
        self._sending = threading.Lock()
        self._begun = b""  # received and not yet a whole frame
        self._arrivals = select.epoll()
        self._arrivals.register(sock, WAKING)

    def wait(self) -> None:
        """Waits until something arrives for which no thread was woken, or the socket ends. Any thread."""
        for _, events in self._arrivals.poll(maxevents=1):
            if events & ENDED:
                self._look_again()  # whoever waits next is to learn it, too: the last bytes may have come with the end

    def _look_again(self) -> None:
        """Wakes one more thread for what is unread, or for the end."""
        self._arrivals.modify(self._socket, WAKING)

    def send(self, type: Type, id: int, payload: bytes) -> None:
        """Sends one frame. Raises PayloadTooLarge; OSError when the module is gone."""
        self.send_frame(frames.encode(type, id, payload))

    def send_frame(self, frame: bytes) -> None:
        """Sends a frame that is encoded already. Raises OSError when the module is gone."""
        with self._sending:
            self._socket.sendall(frame)

    def send_list(self, type: Type, id: int, items: Iterable[bytes | bytearray | memoryview | str]) -> None:
        parts = (item.encode("utf-8", "surrogateescape") if isinstance(item, str) else item for item in items)
        self.send(type, id, frames.pack(parts))

    def receive(self) -> list[Frame] | None:
        """The frames that are there now, in order, perhaps none; None when the module closed its end.

        For one thread at a time. Raises MalformedFrame.
        """
        try:
            chunk = self._socket.recv(RECEIVE, socket.MSG_DONTWAIT)
        except BlockingIOError:  # another thread was faster
            return []
        if len(chunk) == RECEIVE:
            self._look_again()  # there may be more
        self._begun = self._begun + chunk if self._begun else chunk
        return self._complete_frames() if chunk else None

    def _complete_frames(self) -> list[Frame] | None:
        """Takes the whole frames out of what was received; None when the socket ends within a long one."""
        complete: list[Frame] = []
        size, at, data = frames.HEADER.size, 0, self._begun
        while len(data) - at >= size:
            length, type, id = frames.decode_header(data, at)
            end = at + size + length
            if end > len(data) and length > RECEIVE:
                data, at, end = self._rest(data[at:], size + length), 0, size + length
                if len(data) < end:
                    return None
            if end > len(data):
                break
            complete.append(Frame(type, id, data[at + size : end]))
            at = end
        self._begun = data[at:]
        return complete

    def _rest(self, start: bytes, length: int) -> bytes:
        """A long frame that begins with `start`, whole; shorter when the socket ends."""
        frame = bytearray(length)
        frame[: len(start)] = start
        view, at = memoryview(frame), len(start)
        while at < length and (size := self._socket.recv_into(view[at:])):
            at += size
        return bytes(view[:at])
