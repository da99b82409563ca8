"""Any tensor comes back as it was stored: bytes, values and shape, and from a dump."""

import math

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from shardqa import tensors

from .servers import Server  # noqa: TID251 (this package is tests/module)

Pair = tuple[Server, Server]
NUMBERS = sorted(name for name in tensors.DTYPES if name != "STRING")
SHAPES = st.lists(st.integers(1, 5), max_size=5)
many = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@st.composite
def numbers(draw: st.DrawFn) -> tuple[str, list[int], bytes]:
    """Type, shape and bytes; those of BOOL are 0 and 1."""
    name, shape = draw(st.sampled_from(NUMBERS)), draw(SHAPES)
    size = math.prod(shape) * np.dtype(tensors.DTYPES[name]).itemsize
    raw = draw(st.binary(min_size=size, max_size=size))
    return name, shape, bytes(byte & 1 for byte in raw) if name == "BOOL" else raw


@many
@given(numbers())
def test_bytes_of_every_type_and_shape_come_back(shared: Pair, tensor: tuple[str, list[int], bytes]) -> None:
    name, shape, raw = tensor
    client = shared[0].client()
    client.execute_command("AI.TENSORSET", "t", name, *shape, "BLOB", raw)
    expected = [b"dtype", name.encode(), b"shape", shape, b"blob", raw]
    assert client.execute_command("AI.TENSORGET", "t", "META", "BLOB") == expected
    client.restore("restored", 0, client.dump("t"), replace=True)
    assert len(set(client.execute_command("DEBUG", "DIGEST-VALUE", "t", "restored"))) == 1


@many
@given(numbers())
def test_values_that_are_read_can_be_stored_again(shared: Pair, tensor: tuple[str, list[int], bytes]) -> None:
    """The text of a number says all of it. A NaN can't be given as a value, as in RedisAI."""
    name, shape, raw = tensor
    client = shared[0].client()
    client.execute_command("AI.TENSORSET", "t", name, *shape, "BLOB", raw)
    values = client.execute_command("AI.TENSORGET", "t", "VALUES")
    assume(b"nan" not in values)
    client.execute_command("AI.TENSORSET", "again", name, *shape, "VALUES", *values)
    assert client.execute_command("AI.TENSORGET", "again", "VALUES") == values


@many
@given(st.lists(st.text(st.characters(exclude_characters="\0", codec="utf-8"), max_size=20), min_size=1, max_size=8))
def test_strings_come_back(shared: Pair, strings: list[str]) -> None:
    client = shared[0].client()
    client.execute_command("AI.TENSORSET", "t", "STRING", len(strings), "VALUES", *strings)
    expected = [text.encode() for text in strings]
    assert client.execute_command("AI.TENSORGET", "t", "VALUES") == expected
    assert client.execute_command("AI.TENSORGET", "t", "BLOB") == b"".join(text + b"\0" for text in expected)


EDGES = [2**29 + 1, 2**31 - 1, 2**31, 2**32, 2**63 - 1, 2**63, 2**64]


@pytest.mark.parametrize(
    "shape",
    [
        *([n] for n in EDGES),
        [2**31, 2],
        [2, 2**31],
        [2**16, 2**16],
        [1, 2**33, 0],
        [2**32, 2**32],
        [6 * 10**8],
        [1] * 33,
        [0],
        [2, 0],
    ],
)
def test_shapes_past_the_bound_are_refused_whatever_their_product_wraps_to(shared: Pair, shape: list[int]) -> None:
    assert shared[0].error("AI.TENSORSET", "t", "INT8", *map(str, shape)).startswith("ERR invalid or negative value")
