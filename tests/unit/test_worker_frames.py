"""Frames: what is written is read, and what is no frame is refused before anything is built from it."""

import socket

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardqa.module.worker import frames
from shardqa.module.worker.frames import Frame, MalformedFrame, PayloadTooLarge, Type
from shardqa.module.worker.link import Link

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
        (frames.HEADER.pack(frames.MAX_PAYLOAD + 1, 1, 0, 1, 0), "at most"),
        (frames.HEADER.pack(0, 200, 0, 1, 0), "unknown type 200"),
        (frames.HEADER.pack(0, 1, 0, 2, 0), "version 2"),
        (frames.HEADER.pack(0, 1, 1, 1, 0), "flags 1"),
    ],
)
def test_a_foreign_header_is_malformed(header: bytes, reason: str) -> None:
    with pytest.raises(MalformedFrame, match=reason):
        frames.decode_header(header)


def test_a_payload_past_the_limit_is_not_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frames, "MAX_PAYLOAD", 10)
    with pytest.raises(PayloadTooLarge):
        frames.encode(Type.REPLY, 1, b"x" * 11)


@given(st.lists(st.tuples(st.sampled_from(Type), st.integers(0, 1000), st.binary(max_size=2000)), max_size=10))
def test_frames_arrive_in_order_however_the_stream_is_cut(sent: list[tuple[Type, int, bytes]]) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        stream = b"".join(frames.encode(*frame) for frame in sent)
        for at in range(0, len(stream), 777):
            ours.sendall(stream[at : at + 777])
        ours.shutdown(socket.SHUT_WR)
        assert list(Link(theirs).frames()) == [Frame(*frame) for frame in sent]


def test_a_stream_that_ends_inside_a_frame_ends_the_reading() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.sendall(frames.encode(Type.REPLY, 1, b"whole") + frames.encode(Type.REPLY, 2, b"half")[:-1])
        ours.shutdown(socket.SHUT_WR)
        assert [frame.id for frame in Link(theirs).frames()] == [1]
