"""`python -I -m shardqa.worker`: the worker of one Redis node. Started by the module, with its socket as fd 3.

It must never outlive its Redis: the kernel kills it when its parent dies, and the end of the socket ends it (which
also covers a parent that died before the first line here ran). SIGTERM and SIGINT are ignored, because a service
manager sends them to Redis and worker alike, and Redis may still be saving.
"""

import ctypes
import faulthandler
import gc
import os
import signal
import socket
import sys
import threading
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

gc.disable()  # imports leave no garbage, and a fifth of their time went into looking for it; until it is ready

# numeric libraries read these when they are first imported; the models have threads of their own
for library in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(library, "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

from shardqa.worker import installer, sandbox, starter  # noqa: E402

# before the imports below, which begin threads; the walls of threads that run already can't be put up any more
INSTALLER = installer.start(os.environ) if __name__ == "__main__" else None
STARTER = starter.start(os.environ) if __name__ == "__main__" else None
CONFINED = sandbox.confine(os.environ) if __name__ == "__main__" else "off"

from shardqa.worker.activity import Activity  # noqa: E402
from shardqa.worker.frames import Frame, MalformedFrame, Type  # noqa: E402
from shardqa.worker.link import Link  # noqa: E402
from shardqa.worker.socket_threads import NAME, THREADS, SocketThreads  # noqa: E402
from shardqa.worker.worker import Worker  # noqa: E402

SOCKET = 3  # file descriptor
PR_SET_PDEATHSIG = 1  # of prctl(2), as the next
PR_SET_THP_DISABLE = 41
NICENESS = 5  # the worker computes, Redis answers: Redis comes first
SWITCH = 0.0005  # seconds the interpreter's lock may stay with one thread while a reply waits for it


def main() -> NoReturn:
    faulthandler.register(signal.SIGUSR2, all_threads=True)  # the module asks so before it kills a worker that hangs
    activity = Activity()
    activity.start()  # before nice: a heartbeat that is late on a busy machine would cost the worker its life
    follow_parent()
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.nice(NICENESS)
    sys.setswitchinterval(SWITCH)
    sys.stdout = sys.stderr  # print() of functions goes where errors go: into the Redis log
    link = Link(socket.socket(fileno=SOCKET))
    with leaving():
        reading = opened(link, activity)
    for number in range(1, THREADS):
        threading.Thread(target=serve, args=(reading,), name=f"{NAME} {number}", daemon=True).start()
    serve(reading)


def opened(link: Link, activity: Activity) -> SocketThreads:
    """The worker that HELLO asks for, and what is still to be read for it."""
    frames: list[Frame] | None = []
    while frames == []:
        link.wait()
        frames = link.receive()
    if frames is None:
        leave("")
    hello, *others = frames
    if hello.type is not Type.HELLO:
        raise MalformedFrame(f"the first frame is {hello.type.name}, wanted HELLO")
    worker = Worker(link, hello, activity, CONFINED, INSTALLER, STARTER)
    reading = SocketThreads(link, worker.handle, worker.handled)
    for work in reading.handle(others):
        work()
    return reading


def serve(reading: SocketThreads) -> NoReturn:
    """Runs a reading thread; the first that can't go on ends the process."""
    try:
        with leaving():
            reading.serve()
    except Exception:  # noqa: BLE001 - threading would end this thread alone
        traceback.print_exc()
        leave("a reading thread failed")
    leave("")


@contextmanager
def leaving() -> Iterator[None]:
    """Ends the process, with the reason, when the module or the socket to it is at fault."""
    try:
        yield
    except (MalformedFrame, ValueError) as error:
        leave(f"the module sent what the protocol does not know: {error}")
    except OSError as error:
        leave(f"the socket to the module broke: {error}")


def follow_parent() -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0) != 0:
        leave(f"prctl(PR_SET_PDEATHSIG) failed: {os.strerror(ctypes.get_errno())}")
    # Redis forbids itself huge pages and we inherit that; models gain by them
    libc.prctl(PR_SET_THP_DISABLE, 0, 0, 0, 0)


def leave(reason: str) -> NoReturn:
    """Ends the process at once: threads may be inside a model's run or a function that never ends."""
    if reason:
        print(reason, file=sys.stderr)
    sys.stderr.flush()
    os._exit(1 if reason else 0)


if __name__ == "__main__":
    main()
