"""Tensors on the wire: RedisAI's type names, a shape like '1,128', little-endian bytes in C order; and numpy.

STRING data is its strings one after another, each ended by a zero byte; as numpy it is an array of objects (str).
Error texts are RedisAI's.
"""

import math
import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

KINDS = "FLOAT f4 DOUBLE f8 INT8 i1 INT16 i2 INT32 i4 INT64 i8 UINT8 u1 UINT16 u2 BOOL ? FLOAT16 f2 UINT32 u4 UINT64 u8"
DTYPES: dict[str, np.dtype[Any]] = {
    **{name: np.dtype(f"<{kind}") for name, kind in re.findall(r"(\w+) (\S+)", KINDS)},
    "BFLOAT16": np.dtype([("bfloat16", "<u2")]),  # numpy has no such number: its bits under that name
}
BFLOAT16 = DTYPES["BFLOAT16"]
NOTHING = np.dtype("V1")  # of what a model gives that is no tensor: it takes a key, and nothing is stored
NAMES = {dtype: name for name, dtype in DTYPES.items()}
MAX_DIMENSIONS = 32  # more than any model has; bounds what a shape can make us do
MAX_BYTES = 512 << 20  # of a tensor: a client can't send or receive a longer string


class BadTensor(ValueError):
    """The bytes, values or shape make no tensor of the type."""


def parse_shape(text: bytes) -> tuple[int, ...]:
    """Parses '1,128' as (1, 128); '' is a scalar. Raises BadTensor."""
    if not text:
        return ()
    parts = text.split(b",")
    if len(parts) > MAX_DIMENSIONS or not all(part.isdigit() for part in parts):
        raise BadTensor("invalid or negative value found in tensor shape")
    return tuple(map(int, parts))


def decode(dtype: str, shape: tuple[int, ...], data: bytes) -> Array:
    """A read-only array over `data` (STRING: a new array of str). Raises BadTensor."""
    count = math.prod(shape)
    if dtype == "STRING":
        return _decode_strings(shape, count, data)
    numpy_type = DTYPES.get(dtype)
    if numpy_type is None:
        raise BadTensor("invalid data type")
    if count * numpy_type.itemsize != len(data):
        raise BadTensor("data length does not match tensor shape and type")
    if dtype == "BOOL" and data.translate(None, b"\0\1"):
        raise BadTensor("BOOL tensor elements must be 0 or 1")
    return np.frombuffer(data, numpy_type).reshape(shape)


def _decode_strings(shape: tuple[int, ...], count: int, data: bytes) -> Array:
    if data[-1:] not in (b"", b"\0") or data.count(b"\0") != count:
        raise BadTensor("Number of string elements in data blob does not match tensor length")
    array = np.empty(count, dtype=object)
    array[:] = [part.decode("utf-8", "surrogateescape") for part in data.split(b"\0")[:-1]]
    return array.reshape(shape)


def encode(array: Array) -> tuple[str, str, bytes]:
    """Returns (type name, shape, data). Raises BadTensor for a type that has no name here."""
    name, shape, dtype = described(array.dtype, array.shape)
    if array.dtype == NOTHING:
        return name, shape, b""
    if dtype is None:
        data = b"".join(_string(item) + b"\0" for item in array.ravel())
    else:
        data = array.astype(dtype, copy=False).tobytes()  # in C order, whatever the array's own
    return name, shape, data


def described(dtype: np.dtype[Any], shape: tuple[int, ...]) -> tuple[str, str, np.dtype[Any] | None]:
    """Names of type and shape, and the type to send, None for strings. Raises BadTensor."""
    if dtype == NOTHING:
        return "NONE", "", None
    text = ",".join(map(str, shape))
    size = math.prod(shape) * (1 if dtype.kind in "OUS" else dtype.itemsize)
    if len(shape) > MAX_DIMENSIONS or not 0 < size <= MAX_BYTES:
        limits = f"one element or more, at most {MAX_DIMENSIONS} dimensions and {MAX_BYTES >> 20} MiB"
        raise BadTensor(f"an array of shape ({text}) and {size} bytes is no tensor, which has {limits}")
    if dtype.kind in "OUS":
        return "STRING", text, None
    name = NAMES.get(dtype.newbyteorder("<"))
    if name is None:
        raise BadTensor(f"tensors of type {dtype} are not supported; cast to one of {', '.join(DTYPES)}")
    return name, text, DTYPES[name]


def _string(item: Any) -> bytes:
    try:
        data = item if isinstance(item, bytes) else str(item).encode("utf-8", "surrogateescape")
    except UnicodeEncodeError as error:
        raise BadTensor(f"a string holds half a character, {error.object[error.start]!a}; give whole ones") from None
    if b"\0" in data:
        raise BadTensor("C-string value contains null character")
    return data


def from_values(dtype: str, shape: tuple[int, ...], values: Any) -> Array:
    """An array of the type and shape from flat Python values. Raises BadTensor."""
    if dtype != "STRING" and dtype not in DTYPES:
        raise BadTensor("invalid data type")
    try:
        if dtype == "BFLOAT16":
            return _bfloat16(np.array(values, np.float32)).reshape(shape)
        array = np.array(values, dtype=object if dtype == "STRING" else DTYPES[dtype])
        return array.reshape(shape)
    except (ValueError, TypeError, OverflowError) as error:
        raise BadTensor(f"invalid value: {error}") from None


def _bfloat16(array: Array) -> Array:
    """The upper halves of float32 numbers, rounded to the nearest, ties to even."""
    bits = array.view(np.uint32)
    sums = bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))
    words = np.where(np.isnan(array), bits | np.uint32(0x400000), sums)
    return (words >> np.uint32(16)).astype("<u2").view(BFLOAT16)
