"""The threads that read the socket: all wait for it, one at a time leads, that is, reads and handles frames in order.

A frame may bring a run of a model that is idle, or a miss that a plain function answers. The leader then computes by
itself, so that this does not wait for another thread to wake; the other one is waiting already and is woken when more
arrives. Only one of the two computes, so that one always reads.
"""

import threading
from collections.abc import Callable, Iterable

from shardqa.worker.frames import Frame
from shardqa.worker.link import Link

THREADS = 2  # that call `serve`
NAME = "reading"  # what their names begin with, the main thread's aside

Work = Callable[[], None]  # what a frame leaves to do for the thread that read it, once another one can read


class SocketThreads:
    def __init__(
        self, link: Link, handle: Callable[[Frame], Work | None], on_turn: Callable[[], None] = lambda: None
    ) -> None:
        self._link = link
        self._handle = handle
        self._handled = on_turn  # all that came together
        self._lead = threading.Lock()

    def serve(self) -> None:
        """Serves until the module closes its end. Raises MalformedFrame, ValueError, OSError when the socket broke."""
        while (works := self._next()) is not None:
            for work in works:
                _computing.now = True
                work()
                _computing.now = False

    def _next(self) -> list[Work] | None:
        self._link.wait()
        with self._lead:
            frames = self._link.receive()
            return None if frames is None else self.handle(frames)

    def handle(self, frames: Iterable[Frame]) -> list[Work]:
        """Handles frames in order; returns what they leave to do."""
        works = []
        for frame in frames:  # no comprehension: it would be a frame more on each way to a function
            work = self._handle(frame)
            if work is not None:
                works.append(work)
        self._handled()
        return works


_computing = threading.local()  # `now`: this thread computes, and the other one reads


def is_reading() -> bool:
    """Whether the calling thread is one of those that read, and does not compute."""
    thread = threading.current_thread()
    one_of_them = thread is threading.main_thread() or thread.name.startswith(NAME)
    return one_of_them and not getattr(_computing, "now", False)
