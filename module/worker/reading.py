"""The threads that read the socket: one leads, that is, reads and handles frames in order; the other waits its turn.

A frame may bring a run of a model that is idle. The leader then hands the lead over and computes by itself, so that a
run does not wait for another thread to wake. Only one of the two computes, so that one always reads.
"""

import threading
from collections.abc import Callable, Iterator

from shardqa.module.worker.frames import Frame

THREADS = 2  # that call `serve`
NAME = "reading"  # what their names begin with, the main thread's aside

Work = Callable[[], None]
"""What a frame leaves to do for the thread that read it, once another one reads."""


class Reading:
    def __init__(self, arriving: Iterator[Frame], handle: Callable[[Frame], Work | None]) -> None:
        self._arriving = arriving
        self._handle = handle
        self._lead = threading.Lock()

    def serve(self) -> None:
        """Until the module closes its end. Raises MalformedFrame, ValueError, and OSError when the socket broke."""
        while (work := self._next()) is not None:
            work()

    def _next(self) -> Work | None:
        with self._lead:
            for frame in self._arriving:
                work = self._handle(frame)
                if work is not None:
                    return work
                del frame  # a model's file is not to be held until the next frame comes
        return None


def is_reading() -> bool:
    """Whether the calling thread is one of those that read."""
    thread = threading.current_thread()
    return thread is threading.main_thread() or thread.name.startswith(NAME)
