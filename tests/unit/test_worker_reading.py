"""The two threads that read the socket: frames in order, and nobody waits for one that computes."""

import threading
from collections.abc import Iterator

import pytest

from shardqa.module.worker.frames import Frame, MalformedFrame, Type
from shardqa.module.worker.reading import THREADS, Reading, Work, is_reading


def frames(count: int) -> Iterator[Frame]:
    return (Frame(Type.EXECUTE, number, b"") for number in range(count))


def serve(reading: Reading) -> list[threading.Thread]:
    threads = [threading.Thread(target=reading.serve, name=f"reading {number}") for number in range(THREADS)]
    for thread in threads:
        thread.start()
    return threads


def test_frames_are_handled_in_order_whoever_reads_them() -> None:
    handled: list[int] = []

    def handle(frame: Frame) -> Work | None:
        handled.append(frame.id)
        return (lambda: None) if frame.id % 3 == 0 else None

    for thread in serve(Reading(frames(1000), handle)):
        thread.join()
    assert handled == list(range(1000))


def test_while_one_computes_the_other_reads() -> None:
    second_came = threading.Event()
    waited: list[bool] = []

    def handle(frame: Frame) -> Work | None:
        if frame.id == 0:
            return lambda: waited.append(second_came.wait(10))
        second_came.set()
        return None

    for thread in serve(Reading(frames(2), handle)):
        thread.join()
    assert waited == [True]


def test_a_broken_stream_is_raised_where_it_is_read() -> None:
    def broken() -> Iterator[Frame]:
        yield Frame(Type.EVENT, 1, b"")
        raise MalformedFrame("no frame")

    with pytest.raises(MalformedFrame):
        Reading(broken(), lambda frame: None).serve()


def test_reading_threads_are_known_by_their_names() -> None:
    found: list[bool] = []
    for name in ("reading 1", "model"):
        thread = threading.Thread(target=lambda: found.append(is_reading()), name=name)
        thread.start()
        thread.join()
    assert found == [True, False]
