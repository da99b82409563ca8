"""Values of functions as RESP, and the replies of Redis back."""

from typing import Any

import hiredis
import pytest
from hypothesis import given
from hypothesis import strategies as st
from redis import ResponseError

from shardqa.worker import calls, resp
from shardqa.worker.frames import MalformedFrame

SCALARS = st.none() | st.integers(-(1 << 63), (1 << 63) - 1) | st.binary(max_size=50)
VALUES = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=4), max_leaves=20)


def decode(raw: bytes) -> Any:
    reader = hiredis.Reader(replyError=ResponseError)
    reader.feed(raw)
    value = reader.gets()
    assert not reader.has_data()
    return value


@given(VALUES)
def test_bytes_numbers_lists_and_none_come_back_as_they_are(value: Any) -> None:
    assert decode(resp.encode(value)) == value


@given(st.text(max_size=50))
def test_text_is_sent_as_its_utf8_bytes(text: str) -> None:
    assert decode(resp.encode(text)) == text.encode()


@pytest.mark.parametrize(
    ("value", "sent"),
    [
        *((number, str(number).encode()) for number in (1 << 63, -(1 << 63) - 1, 1 << 70)),
        *((text, text.encode()) for text in ("-ERR no", "+OK", ":1", "$-1", "", "a\r\nb")),
        (b"\xff\x00key".decode("utf-8", "surrogateescape"), b"\xff\x00key"),
        ("a\ud800b", b"a?b"),
        ({"a": 1.5, "b": True}, {b"a": 1.5, b"b": True}),
        ([float("nan"), float("inf")], [b"nan", b"inf"]),
        (ValueError("x"), b"x"),
    ],
)
def test_what_resp_has_no_form_for_is_sent_in_the_nearest(value: Any, sent: Any) -> None:
    assert decode(resp.encode(value)) == sent


def test_a_value_nested_too_deep_is_an_error_not_a_broken_reply() -> None:
    value: Any = 1
    for depth in range(1, 40):
        value = [value]
        reply = decode(resp.encode(value))
        if depth <= resp.MAX_DEPTH:
            assert isinstance(reply, list)
        else:
            assert "deeper than 16" in str(reply)


def test_a_value_that_holds_itself_is_an_error() -> None:
    value: list[Any] = []
    value.append({"again": value})
    assert "deeper than 16" in str(decode(resp.encode(value)))


def test_an_aggregate_has_as_many_items_as_it_gives_whatever_length_it_says() -> None:
    class Liar(list[Any]):
        def __len__(self) -> int:
            return 5

    assert decode(resp.encode([Liar([1]), 2])) == [[1], 2]


def test_a_string_past_the_limit_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resp, "MAX_STRING", 10)
    assert "of 11 bytes, at most 10" in str(decode(resp.encode("x" * 11)))


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("ERR a\r\nb", b"-ERR a b\r\n"),
        ("no code", b"-ERR no code\r\n"),
        ("TRYAGAIN later", b"-TRYAGAIN later\r\n"),
        ("SOMETHING odd", b"-ERR SOMETHING odd\r\n"),
        ("", b"-ERR unknown error\r\n"),
    ],
)
def test_an_error_is_one_line_that_begins_with_a_known_code(text: str, line: bytes) -> None:
    assert resp.error(text) == line


def test_a_line_is_a_status_or_an_error_and_other_text_with_its_sign_is_data() -> None:
    assert resp.encode([resp.lined("-BUSY come back"), resp.lined("+OK")]) == b"*2\r\n-BUSY come back\r\n+OK\r\n"
    assert [resp.encode(resp.lined(text))[:1] for text in ("-5", "+49 40", "- an item", "+", "-Me")] == [b"$"] * 5


def test_replies_of_a_call_are_parsed_in_order_with_errors_as_items() -> None:
    first, second, third = calls.parse(b"+OK\r\n-WRONGTYPE no\r\n*1\r\n:1\r\n", 3)
    assert (first, third) == (b"OK", [1])
    assert isinstance(second, ResponseError)
    assert str(second) == "WRONGTYPE no"


@pytest.mark.parametrize("raw", [b"", b"+OK\r\n", b"+OK\r\n+OK\r\n+OK\r\n", b"+OK\r\n$5\r\nab", b"+OK\r\n?x\r\n"])
def test_replies_that_are_not_as_many_as_commands_are_malformed(raw: bytes) -> None:
    with pytest.raises(MalformedFrame):
        calls.parse(raw, 2)
