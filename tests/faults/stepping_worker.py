"""`stepping_worker.py SOCKET -I -m shardqa.worker`: a worker that asks before each frame it handles or sends.

Tests alone start it, as the module's PYTHON (steps.py), so that what serves knows nothing of it. It says each frame on
a Unix socket, in one line, and goes on when it is told to.
"""

import runpy
import socket
import sys
import threading
from pathlib import Path
from typing import Any

from shardqa.worker import frames
from shardqa.worker.frames import Frame, Type
from shardqa.worker.link import Link

SHOWN = 400  # bytes of a payload
SILENT = {Type.LOG, Type.STATS, Type.EVENT, Type.ROLE, Type.READY, Type.WATCH, Type.RAN}  # they come at any time


class Teller:
    def __init__(self, path: str) -> None:
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.connect(path)
        self._lock = threading.Lock()
        self._calls: dict[int, bytes] = {}  # what a CALL said, by its id

    def tell(self, direction: bytes, type: Type, id: int, payload: bytes) -> None:
        """Returns when the worker may go on."""
        if type in SILENT:
            return
        shown = _words(payload)
        if type is Type.CALL:
            self._calls[id] = shown
        elif type is Type.CALLED:
            shown = self._calls.pop(id, b"")
        with self._lock:
            self._socket.sendall(direction + b" " + type.name.encode() + b" " + shown + b"\n")
            if not self._socket.recv(1):
                sys.exit("whoever told the steps is gone")


def _words(payload: bytes) -> bytes:
    return payload[:SHOWN].replace(b"\n", b" ").replace(b"\0", b" ")


def main() -> None:
    path, *rest = sys.argv[1:]
    assert rest[-2:] == ["-m", "shardqa.worker"], rest
    teller, send, whole = Teller(path), Link.send_frame, Link._complete_frames

    def send_frame(link: Link, frame: bytes) -> None:
        _, type, id = frames.decode_header(frame, 0)
        teller.tell(b"out", type, id, frame[frames.HEADER.size :])
        send(link, frame)

    def complete_frames(link: Link) -> list[Frame] | None:
        received = whole(link)
        for frame in received or ():
            teller.tell(b"in", frame.type, frame.id, frame.payload)
        return received

    patched: Any = Link
    patched.send_frame, patched._complete_frames = send_frame, complete_frames
    sys.argv = [str(Path(frames.__file__).with_name("__main__.py"))]
    runpy.run_module("shardqa.worker", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
