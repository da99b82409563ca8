"""A function that says how far it is: its client's deadline counts from the last part that was done."""

import pytest
from redis import ResponseError

from .servers import Make  # noqa: TID251 (this package is tests/module)

DEADLINE = "TIMEOUT 2000"  # ms; a part takes a tenth of a second


def test_a_trigger_that_gets_on_takes_longer_than_the_deadline(make: Make) -> None:
    server = make(arguments=DEADLINE)
    assert server.order("parts", "25", "answers") == b"OK"
    assert server.info()["timeouts"] == 0


def test_a_trigger_that_gets_on_no_further_has_its_deadline(make: Make) -> None:
    server = make(arguments=DEADLINE)
    with pytest.raises(ResponseError, match="TIMEOUT"):
        server.order("parts", "3", "hangs")
    assert server.info()["timeouts"] == 1
    assert server.order("echo", "x") == [b"x"]


def test_progress_of_what_nobody_waits_for_is_ignored(make: Make) -> None:
    server = make()
    for id in (0, 1, 2**63):
        server.order("bytes", progress(id))
    assert server.info()["worker_restarts"] == 0


def progress(id: int) -> bytes:
    return b"\x04\0\0\0\x4a\0\x02\0" + id.to_bytes(8, "little") + b"\0\0\0\0"
