"""EXECUTE and TENSORS frames: what one side writes the other reads, and what is no tensor is said so."""

import struct
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from shardqa import tensors
from shardqa.tensors import Array, BadTensor
from shardqa.worker import frames
from shardqa.worker.ai import messages
from shardqa.worker.frames import MalformedFrame, PayloadTooLarge, Type

SHAPES = arrays.array_shapes(min_dims=0, max_dims=4, max_side=3)
PLAIN = arrays.arrays(st.sampled_from(list(tensors.DTYPES.values())), SHAPES)
CHARACTERS = st.characters(codec="utf-8", exclude_characters="\0")
TEXTS = arrays.arrays(np.dtype(object), SHAPES, elements=st.text(CHARACTERS, max_size=5))
TENSORS = st.one_of(PLAIN, TEXTS)


def executed(head: str, *data: bytes) -> tuple[messages.Order, list[Array]]:
    return messages.order(frames.pack([head.encode(), *data]))


def answer(id: int, outputs: Sequence[Array], microseconds: int) -> bytes:
    return messages.answer(id, messages.form_of(outputs, None), outputs, microseconds)


def answered(frame: bytes) -> tuple[int, list[bytes]]:
    """(id, items) of a TENSORS frame."""
    length, type, id = frames.decode_header(frame)
    assert (type, length) == (Type.TENSORS, len(frame) - frames.HEADER.size)
    return id, frames.unpack(frame[frames.HEADER.size :])


@given(st.lists(TENSORS, min_size=1, max_size=4))
def test_the_tensors_of_an_order_are_those_that_were_sent(sent: list[Array]) -> None:
    encoded = [tensors.encode(array) for array in sent]
    layout = ";".join(f"{dtype} {shape}" for dtype, shape, _ in encoded)
    order, received = executed(f"7 250 2 {layout}", *(data for _, _, data in encoded))
    assert (order.model, order.timeout, order.outputs) == (b"7", 250, 2)
    for one, other in zip(sent, received, strict=True):
        np.testing.assert_array_equal(one, other)


@given(st.lists(TENSORS, min_size=1, max_size=4), st.integers(0, 2**64 - 1), st.integers(0, 2**63))
def test_an_answer_says_every_type_shape_and_byte(outputs: list[Array], id: int, microseconds: int) -> None:
    found, (time, layout, *data) = answered(answer(id, outputs, microseconds))
    assert (found, struct.unpack("<Q", time)) == (id, (microseconds,))
    for output, tensor, item in zip(outputs, layout.decode().split(";"), data, strict=True):
        assert (*tensor.split(" "), item) == tensors.encode(output)


@given(st.lists(TENSORS, min_size=1, max_size=3), st.lists(TENSORS, min_size=1, max_size=3))
def test_outputs_have_their_own_form_whatever_the_last_ones_had(outputs: list[Array], others: list[Array]) -> None:
    last = messages.form_of(others, None)
    assert messages.form_of(outputs, last) == messages.form_of(outputs, None)
    assert messages.form_of(others, last) is last


def test_an_array_in_another_byte_order_is_sent_little_endian() -> None:
    _, (_, layout, data) = answered(answer(1, [np.array([1, 2], ">i4")], 5))
    assert (layout, data) == (b"INT32 2", struct.pack("<2i", 1, 2))


@pytest.mark.parametrize("head", ["", "1 0 1", "1 x 1 FLOAT 1", "1 0 x FLOAT 1"])
def test_a_head_that_says_too_little_is_malformed(head: str) -> None:
    with pytest.raises(MalformedFrame, match="EXECUTE begins with"):
        executed(head, b"1234")


def test_an_order_without_any_item_is_malformed() -> None:
    with pytest.raises(MalformedFrame):
        messages.order(frames.pack([]))


def test_an_order_whose_data_is_not_all_there_is_malformed() -> None:
    with pytest.raises(MalformedFrame, match="names 2 inputs and brings 1"):
        executed("1 0 1 FLOAT 1;FLOAT 1", b"1234")


@pytest.mark.parametrize("shape", [(0,), (2, 0, 3), (1,) * 33, (1 << 20, 1 << 10)])
def test_an_array_that_no_tensor_can_hold_is_refused_with_the_limits(shape: tuple[int, ...]) -> None:
    array = np.broadcast_to(np.float32(0), shape)
    with pytest.raises(BadTensor, match="one element or more, at most 32 dimensions and 512 MiB"):
        answer(1, [array], 5)


def test_a_string_with_half_a_character_is_refused() -> None:
    with pytest.raises(BadTensor, match=r"holds half a character, '\\ud800'"):
        answer(1, [np.array(["good", "\ud800"], object)], 5)


def test_outputs_that_are_no_arrays_are_refused() -> None:
    with pytest.raises(BadTensor, match="a sequence or a map"):
        answer(1, [[{1: 0.5}]], 5)  # type: ignore[list-item]


def test_outputs_too_large_for_one_frame_are_refused() -> None:
    half = np.broadcast_to(np.int8(0), (1 << 29,))
    with pytest.raises(PayloadTooLarge, match="ask for less at once"):
        answer(1, [half, half, half], 5)
