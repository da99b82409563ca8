"""AI.TENSORSET and AI.TENSORGET, and tensors as keys."""

import struct
from typing import Any

import pytest

from .servers import Server, until  # noqa: TID251 (this package is tests/module)

Pair = tuple[Server, Server]


def run(shared: Pair, *words: Any) -> Any:
    return shared[0].client().execute_command(*words)


@pytest.mark.parametrize(
    ("dtype", "code", "values"),
    [
        ("FLOAT", "f", [1.5, -2.0]),
        ("DOUBLE", "d", [0.1, 1e300]),
        ("INT8", "b", [-128, 127]),
        ("INT16", "h", [-32768, 32767]),
        ("INT32", "i", [-(2**31), 2**31 - 1]),
        ("INT64", "q", [-(2**63), 2**63 - 1]),
        ("UINT8", "B", [0, 255]),
        ("UINT16", "H", [0, 65535]),
        ("BOOL", "B", [0, 1]),
        ("UINT32", "I", [0, 2**32 - 1]),
        ("UINT64", "Q", [0, 2**64 - 1]),
        ("FLOAT16", "e", [1.5, -65504.0]),
    ],
)
def test_values_and_bytes_of_every_type_agree(shared: Pair, dtype: str, code: str, values: list[Any]) -> None:
    blob = struct.pack(f"<2{code}", *values)
    assert run(shared, "AI.TENSORSET", "t", dtype, "2", "VALUES", *values) == b"OK"
    assert run(shared, "AI.TENSORGET", "t", "BLOB") == blob
    assert run(shared, "AI.TENSORSET", "t", dtype, "2", "BLOB", blob) == b"OK"
    assert [float(v) for v in run(shared, "AI.TENSORGET", "t", "VALUES")] == [float(v) for v in values]


def test_bfloat16_is_the_upper_half_of_a_float(shared: Pair) -> None:
    run(shared, "AI.TENSORSET", "t", "BFLOAT16", "3", "VALUES", "1", "-2.5", "3.14159")
    blob = run(shared, "AI.TENSORGET", "t", "BLOB")
    assert blob == b"\x80\x3f\x20\xc0\x49\x40"
    assert run(shared, "AI.TENSORGET", "t", "VALUES") == [b"1", b"-2.5", b"3.140625"]


def test_a_string_may_bring_its_closing_zero_byte(shared: Pair) -> None:
    run(shared, "AI.TENSORSET", "t", "STRING", "2", "VALUES", b"one\0", b"\0")
    assert run(shared, "AI.TENSORGET", "t", "VALUES") == [b"one", b""]


def test_meta_comes_as_a_flat_array(shared: Pair) -> None:
    run(shared, "AI.TENSORSET", "t", "int32", "2", "3", "VALUES", *range(6))
    meta = [b"dtype", b"INT32", b"shape", [2, 3]]
    blob = struct.pack("<6i", *range(6))
    assert run(shared, "AI.TENSORGET", "t", "META") == meta
    assert run(shared, "AI.TENSORGET", "t") == [*meta, b"blob", blob]
    assert run(shared, "AI.TENSORGET", "t", "META", "BLOB") == [*meta, b"blob", blob]
    assert run(shared, "AI.TENSORGET", "t", "META", "VALUES") == [*meta, b"values", [0, 1, 2, 3, 4, 5]]


def test_strings_are_kept_one_after_another(shared: Pair) -> None:
    run(shared, "AI.TENSORSET", "t", "STRING", "3", "VALUES", "a", "", "ü")
    assert run(shared, "AI.TENSORGET", "t", "VALUES") == [b"a", b"", "ü".encode()]
    assert run(shared, "AI.TENSORGET", "t", "BLOB") == b"a\0\0\xc3\xbc\0"
    run(shared, "AI.TENSORSET", "t", "STRING", "2", "BLOB", b"x\0yy\0")
    assert run(shared, "AI.TENSORGET", "t", "VALUES") == [b"x", b"yy"]


def test_without_data_a_tensor_is_zero_or_empty(shared: Pair) -> None:
    run(shared, "AI.TENSORSET", "t", "INT16", "2", "2")
    assert run(shared, "AI.TENSORGET", "t", "VALUES") == [0, 0, 0, 0]
    run(shared, "AI.TENSORSET", "t", "STRING", "2")
    assert run(shared, "AI.TENSORGET", "t", "VALUES") == [b"", b""]


def test_a_tensor_may_have_no_dimensions(shared: Pair) -> None:
    run(shared, "AI.TENSORSET", "t", "INT8", "VALUES", "7")
    assert run(shared, "AI.TENSORGET", "t", "META", "VALUES") == [b"dtype", b"INT8", b"shape", [], b"values", [7]]


def test_numbers_that_are_no_numbers_come_back(shared: Pair) -> None:
    run(shared, "AI.TENSORSET", "t", "FLOAT", "3", "BLOB", struct.pack("<3f", float("inf"), float("nan"), -0.0))
    assert run(shared, "AI.TENSORGET", "t", "VALUES") == [b"inf", b"nan", b"-0"]
    three = shared[0].client(protocol=3).execute_command("AI.TENSORGET", "t", "VALUES")
    assert three[0] == float("inf")
    assert three[1] == b"nan"


def test_a_key_of_another_type_is_left_alone(shared: Pair) -> None:
    run(shared, "SET", "s", "x")
    assert shared[0].error("AI.TENSORSET", "s", "FLOAT", "1").startswith("WRONGTYPE")
    assert shared[0].error("AI.TENSORGET", "s").startswith("WRONGTYPE")
    run(shared, "AI.TENSORSET", "t", "FLOAT", "1")
    assert shared[0].error("GET", "t").startswith("WRONGTYPE")
    assert run(shared, "GET", "s") == b"x"


def test_a_tensor_is_a_key_like_any_other(shared: Pair) -> None:
    client = shared[0].client()
    run(shared, "AI.TENSORSET", "{t}1", "INT32", "100", "VALUES", *range(100))
    assert client.type("{t}1") == b"AI_TENSOR"
    assert 400 < client.memory_usage("{t}1") < 1000
    assert client.copy("{t}1", "{t}2")
    assert client.rename("{t}2", "{t}3")
    assert client.execute_command("AI.TENSORGET", "{t}3", "VALUES") == list(range(100))
    client.restore("{t}4", 0, client.dump("{t}1"), replace=True)
    assert client.execute_command("DEBUG", "DIGEST-VALUE", "{t}1", "{t}4")[0] != b"0" * 40
    assert len(set(client.execute_command("DEBUG", "DIGEST-VALUE", "{t}1", "{t}3", "{t}4"))) == 1
    client.expire("{t}1", 100)
    assert client.ttl("{t}1") > 0
    client.unlink("{t}1", "{t}3", "{t}4")


def test_a_transaction_may_set_tensors(shared: Pair) -> None:
    pipe = shared[0].client().pipeline(transaction=True)
    pipe.execute_command("AI.TENSORSET", "t", "INT8", "1", "VALUES", "5")
    pipe.execute_command("AI.TENSORGET", "t", "VALUES")
    assert pipe.execute() == [b"OK", [5]]


def test_a_large_tensor_is_unlinked_in_the_background(shared: Pair) -> None:
    run(shared, "AI.TENSORSET", "big", "FLOAT", "25000000")
    before = shared[0].client().info("memory")["lazyfreed_objects"]
    run(shared, "UNLINK", "big")
    until(lambda: shared[0].client().info("memory")["lazyfreed_objects"] > before)


def test_values_that_would_hold_redis_for_seconds_are_refused_and_the_blob_is_not(shared: Pair) -> None:
    server = shared[0]
    assert server.send("AI.TENSORSET", "large", "INT8", (4 << 20) + 1).read_response() == b"OK"
    assert "at most 4194304 are replied; get its BLOB" in server.error("AI.TENSORGET", "large", "META", "VALUES")
    assert len(server.client().execute_command("AI.TENSORGET", "large", "BLOB")) == (4 << 20) + 1
