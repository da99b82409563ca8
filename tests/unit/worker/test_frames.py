"""Frames: what is written is read, and what is no frame is refused before anything is built from it."""

import os
import socket
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardqa.worker import frames
from shardqa.worker.frames import Frame, MalformedFrame, PayloadTooLarge, Type
from shardqa.worker.link import RECEIVE, Link
from tests.unit.worker_client import awaited

ITEMS = st.lists(st.binary(max_size=200), max_size=20)


@given(ITEMS)
def test_a_packed_list_unpacks_to_itself(items: list[bytes]) -> None:
    assert frames.unpack(frames.pack(items)) == items


@given(st.binary(max_size=100))
def test_any_bytes_unpack_or_are_malformed(payload: bytes) -> None:
    try:
        items = frames.unpack(payload)
    except MalformedFrame:
        return
    assert frames.pack(items) == payload


@given(ITEMS, st.data())
def test_a_truncated_list_is_malformed(items: list[bytes], data: st.DataObject) -> None:
    payload = frames.pack(items)
    end = data.draw(st.integers(0, len(payload) - 1))
    with pytest.raises(MalformedFrame):
        frames.unpack(payload[:end])


def test_a_list_that_promises_four_billion_items_is_refused_at_once() -> None:
    with pytest.raises(MalformedFrame, match="can't hold"):
        frames.unpack(b"\xff\xff\xff\xff")


def test_bytes_after_the_last_item_are_malformed() -> None:
    with pytest.raises(MalformedFrame, match="follow"):
        frames.unpack(frames.pack([b"a"]) + b"x")


@given(st.sampled_from(Type), st.integers(0, (1 << 64) - 1), st.integers(0, frames.MAX_PAYLOAD))
def test_a_header_decodes_to_what_was_encoded(type: Type, id: int, length: int) -> None:
    header = frames.HEADER.pack(length, type, 0, frames.VERSION, id)
    assert frames.decode_header(header) == (length, type, id)


@pytest.mark.parametrize(
    ("header", "reason"),
    [
        (frames.HEADER.pack(frames.MAX_PAYLOAD + 1, 1, 0, frames.VERSION, 0), "at most"),
        (frames.HEADER.pack(0, 200, 0, frames.VERSION, 0), "unknown type 200"),
        (frames.HEADER.pack(0, 1, 0, 1, 0), "version 1"),
        (frames.HEADER.pack(0, 1, 1, frames.VERSION, 0), "flags 1"),
    ],
)
def test_a_foreign_header_is_malformed(header: bytes, reason: str) -> None:
    with pytest.raises(MalformedFrame, match=reason):
        frames.decode_header(header)


def test_a_payload_past_the_limit_is_not_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frames, "MAX_PAYLOAD", 10)
    with pytest.raises(PayloadTooLarge):
        frames.encode(Type.REPLY, 1, b"x" * 11)


def received(link: Link) -> list[Frame]:
    """All frames until the other end is closed."""
    found: list[Frame] = []
    while (arrived := awaited(link)) is not None:
        found += arrived
    return found


@given(st.lists(st.tuples(st.sampled_from(Type), st.integers(0, 1000), st.binary(max_size=2000)), max_size=10))
def test_frames_arrive_in_order_however_the_stream_is_cut(sent: list[tuple[Type, int, bytes]]) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        stream = b"".join(frames.encode(*frame) for frame in sent)
        for at in range(0, len(stream), 777):
            ours.sendall(stream[at : at + 777])
        ours.shutdown(socket.SHUT_WR)
        assert received(Link(theirs)) == [Frame(*frame) for frame in sent]


def test_a_stream_that_ends_inside_a_frame_ends_the_reading() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.sendall(frames.encode(Type.REPLY, 1, b"whole") + frames.encode(Type.REPLY, 2, b"half")[:-1])
        ours.shutdown(socket.SHUT_WR)
        assert [frame.id for frame in received(Link(theirs))] == [1]


def test_what_came_in_one_burst_is_received_whole_though_it_woke_nobody_twice() -> None:
    ours, theirs = socket.socketpair()
    burst = [frames.encode(Type.EVENT, id, b"x" * 1000) for id in range(2000)]  # eight times what is asked at once

    def send() -> None:
        ours.sendall(b"".join(burst))
        ours.shutdown(socket.SHUT_WR)

    sender = threading.Thread(target=send)
    with ours, theirs:
        sender.start()
        assert [frame.id for frame in received(Link(theirs))] == list(range(2000))
        sender.join()


def test_a_frame_longer_than_one_receive_comes_whole() -> None:
    ours, theirs = socket.socketpair()
    blob = os.urandom(3 * RECEIVE)
    with ours, theirs:
        sender = threading.Thread(target=ours.sendall, args=(frames.encode(Type.MODELLOAD, 7, blob) * 2,))
        sender.start()
        link = Link(theirs)
        arrived: list[Frame] = []
        while len(arrived) < 2:
            arrived += awaited(link) or []
        sender.join()
    assert [frame.payload == blob for frame in arrived] == [True, True]


def test_what_another_thread_has_taken_is_no_frame_and_no_wait() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        link = Link(theirs)
        assert link.receive() == []


def test_the_end_wakes_every_thread_that_waits() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        link = Link(theirs)
        batches: list[list[Frame] | None] = []
        threads = [threading.Thread(target=lambda: batches.append(awaited(link))) for _ in range(3)]
        for thread in threads:
            thread.start()
        ours.shutdown(socket.SHUT_WR)
        for thread in threads:
            thread.join(10)
        assert batches == [None, None, None]
