"""Stops a worker exactly between two frames: the steps of what it does, by name, and who tells them.

with Steps(folder) as steps:                     # before the nodes start, with PYTHON <steps.python>
    steps.arm(step, lambda pid: os.kill(pid, 9)) # called once, while the worker waits at the step
"""

import socket
import struct
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Self


@dataclass(frozen=True, slots=True)
class Step:
    """The first frame of a kind that holds some words."""

    operation: str
    name: str
    direction: str  # "in": before the worker handles it; "out": before it is sent
    type: str
    words: tuple[bytes, ...] = ()

    def __str__(self) -> str:
        return f"{self.operation}: {self.name}"

    def is_at(self, line: bytes) -> bool:
        return line.startswith(f"{self.direction} {self.type} ".encode()) and all(word in line for word in self.words)


class Steps:
    def __init__(self, folder: Path) -> None:
        self._path = folder / "steps"
        self.python = folder / "python"  # what a node is told to start as its worker's Python
        self.python.write_text(
            f'#!/bin/sh\nexec {sys.executable} -I {Path(__file__).with_name("stepping_worker.py")} {self._path} "$@"\n'
        )
        self.python.chmod(0o755)
        self._listening = socket.socket(socket.AF_UNIX)
        self._listening.bind(str(self._path))
        self._listening.listen(16)
        self._armed: tuple[Step, Callable[[int], None]] | None = None
        self._lock = threading.Lock()
        self.reached = threading.Event()  # the armed step was hit
        self.lines: list[bytes] = []  # all steps

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listening.close()

    def arm(self, step: Step, harm: Callable[[int], None]) -> None:
        """`harm` gets the pid of the worker that waits there; what it does not end goes on when it returns."""
        self.reached.clear()
        self._armed = (step, harm)

    def disarm(self) -> None:
        """Leaves the next operation alone where the step was not reached."""
        self._armed = None

    def _accept(self) -> None:
        with suppress(OSError):  # closed
            while True:
                opened, _ = self._listening.accept()
                threading.Thread(target=self._serve, args=(opened,), daemon=True).start()

    def _serve(self, opened: socket.socket) -> None:
        pid = struct.unpack("3i", opened.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[0]
        with suppress(OSError), opened, opened.makefile("rb") as lines:
            for line in lines:
                self._at(line.rstrip(b"\n"), pid)
                opened.sendall(b"g")

    def _at(self, line: bytes, pid: int) -> None:
        with self._lock:
            self.lines.append(line)
            armed = self._armed
            if armed is None or not armed[0].is_at(line):
                return
            self._armed = None
        armed[1](pid)
        self.reached.set()


def parent(pid: int) -> int:
    """The pid of the node that a worker belongs to."""
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
