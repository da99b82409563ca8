"""Some errors of Redis end by themselves."""

import pytest
from redis import ResponseError
from redis.exceptions import AskError, MovedError, TryAgainError

from shardqa.transient import is_transient


@pytest.mark.parametrize("error", [
    ResponseError("MOVED 12 127.0.0.1:7000"),
    MovedError("12 127.0.0.1:7000"),
    ResponseError("ASK 12 127.0.0.1:7000"),
    AskError("12 127.0.0.1:7000"),
    ResponseError("TRYAGAIN the slot is moving"),
    TryAgainError("the slot is moving"),
])  # fmt: skip
def test_a_slot_on_its_way_is_transient_with_its_code_in_the_text_or_as_a_class(error: ResponseError) -> None:
    assert is_transient(error)


def test_what_no_other_try_mends_is_lasting() -> None:
    assert not is_transient(ResponseError("WRONGTYPE Operation against a key holding the wrong kind of value"))
