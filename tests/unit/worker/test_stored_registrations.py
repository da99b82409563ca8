"""A SESSION frame tells the registrations of a stored session."""

import pytest

from shardqa.worker.gears.registrations import stored_registrations
from shardqa.worker.gears.registrations.stored_registrations import StoredRegistration

BODY = ("KeysReader", "async", "", "doc:*", "", "2", "hset", "del", "0", "0")


def test_ids_come_first_and_then_what_each_is() -> None:
    assert stored_registrations.parse(2, ["n-1", "", *BODY, *BODY]) == [
        StoredRegistration("n-1", BODY),
        StoredRegistration("", BODY),
    ]


def test_ids_may_come_alone() -> None:
    assert stored_registrations.parse(1, ["n-1"]) == [StoredRegistration("n-1")]
    assert stored_registrations.parse(0, []) == []


@pytest.mark.parametrize(
    "items", [(), ("n-1", "KeysReader"), ("n-1", *BODY[:-1]), ("n-1", *BODY, "more"), ("n-1", *BODY[:5], "two")]
)
def test_what_breaks_off_or_goes_on_is_refused(items: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match=r"breaks off|more than|named|invalid literal"):
        stored_registrations.parse(1, items)
