"""The two threads that read the socket: frames in order, and nobody waits for one that computes."""

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from shardqa.worker import frames
from shardqa.worker.frames import Frame, MalformedFrame, Type
from shardqa.worker.link import Link
from shardqa.worker.socket_threads import THREADS, SocketThreads, Work, is_reading


def events(ids: range) -> bytes:
    return b"".join(frames.encode(Type.EVENT, id, b"") for id in ids)


@contextmanager
def reading(handle: Callable[[Frame], Work | None]) -> Iterator[socket.socket]:
    """The module's end of a socket that the threads read; they have ended when the block has."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        one = SocketThreads(Link(theirs), handle)
        threads = [threading.Thread(target=one.serve, name=f"reading {number}") for number in range(THREADS)]
        for thread in threads:
            thread.start()
        yield ours
        ours.shutdown(socket.SHUT_WR)
        for thread in threads:
            thread.join()


def test_frames_are_handled_in_order_whoever_reads_them() -> None:
    ids: list[int] = []

    def handle(frame: Frame) -> Work | None:
        ids.append(frame.id)
        return (lambda: None) if frame.id % 3 == 0 else None

    with reading(handle) as ours:
        for at in range(0, 1000, 7):
            ours.sendall(events(range(at, min(at + 7, 1000))))
    assert ids == list(range(1000))


def test_while_one_computes_the_other_reads() -> None:
    computing, second_came = threading.Event(), threading.Event()
    waits: list[bool] = []

    def compute() -> None:
        computing.set()
        waits.append(second_came.wait(10))

    def handle(frame: Frame) -> Work | None:
        if frame.id == 0:
            return compute
        second_came.set()
        return None

    with reading(handle) as ours:
        ours.sendall(events(range(1)))
        computing.wait(10)
        ours.sendall(events(range(1, 2)))
    assert waits == [True]


def test_what_came_together_is_handled_before_anything_is_computed() -> None:
    steps: list[str] = []

    def handle(frame: Frame) -> Work | None:
        steps.append(f"read {frame.id}")
        return (lambda: steps.append("computed 0")) if frame.id == 0 else None

    with reading(handle) as ours:
        ours.sendall(events(range(3)))
    assert steps == ["read 0", "read 1", "read 2", "computed 0"]


def test_a_broken_stream_is_raised_where_it_is_read() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.sendall(b"no frame at all, by its first sixteen bytes")
        with pytest.raises(MalformedFrame):
            SocketThreads(Link(theirs), lambda frame: None).serve()


def test_reading_threads_are_known_by_their_names() -> None:
    results: list[bool] = []
    for name in ("reading 1", "model"):
        thread = threading.Thread(target=lambda: results.append(is_reading()), name=name)
        thread.start()
        thread.join()
    assert results == [True, False]
