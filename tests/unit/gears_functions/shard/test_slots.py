"""Slots that CLUSTER NODES gives to the node that says it."""

import pytest

from shardqa.gears_functions.shard.slots import ALL, Slots, slot_of

NODES = """\
aaa 127.0.0.1:7000@17000 master - 0 0 1 connected 0-5460 [5461->-bbb]
bbb 127.0.0.1:7001@17001 myself,master - 0 0 2 connected 5461-10922 12000 [5500->-ccc] [42-<-aaa]
ccc 127.0.0.1:7002@17002 master - 0 0 3 connected 10923-16383
ddd 127.0.0.1:7003@17003 slave bbb 0 0 3 connected
"""


@pytest.fixture
def slots() -> Slots:
    return Slots.parse(NODES)


def test_only_the_nodes_own_line_counts(slots: Slots) -> None:
    assert slots == Slots(((5461, 10922), (12000, 12000)), frozenset({5500, 42}))


def test_a_key_of_a_served_slot_is_held(slots: Slots) -> None:
    assert 5461 <= slot_of("doc:c:{b0001}:x") <= 10922 or not slots.holds("doc:c:{b0001}:x")
    assert Slots(((slot_of("k"), slot_of("k")),), frozenset()).holds("k")


def test_a_key_of_a_slot_on_its_way_is_not_held(slots: Slots) -> None:
    moving = Slots(((0, 16_383),), frozenset({slot_of("k")}))
    assert not moving.holds("k")


def migration(state: bytes) -> list[bytes]:
    return [b"name", b"x", b"operation", b"IMPORT", b"slot_ranges", b"7-9 20", b"state", state, b"message", b""]


def test_slots_of_a_migration_under_way_are_on_their_way() -> None:
    assert Slots.parse(NODES, [migration(b"receiving-snapshot")]).moving == frozenset({5500, 42, 7, 8, 9, 20})


@pytest.mark.parametrize("state", [b"success", b"failed", b"cancelled"])
def test_a_migration_that_is_over_moves_nothing(state: bytes) -> None:
    assert Slots.parse(NODES, [migration(state)]).moving == frozenset({5500, 42})


def test_a_node_without_slots_holds_nothing() -> None:
    assert Slots.parse("ddd 127.0.0.1:7003@17003 myself,slave bbb 0 0 3 connected") == Slots((), frozenset())


def test_a_shard_begins_with_the_tag_of_its_lowest_slot() -> None:
    first = slot_of("{06S}")
    assert Slots(((first, first + 9), (first + 20, 16_383)), frozenset()).begins_with("06S")
    assert not Slots(((first + 1, 16_383),), frozenset()).begins_with("06S")
    assert not Slots((), frozenset()).begins_with("06S")


def test_outside_a_cluster_every_key_is_held() -> None:
    assert ALL.holds("anything")


def test_keys_that_are_not_utf8_have_a_slot() -> None:
    assert slot_of(b"doc:\xff".decode("utf-8", "surrogateescape")) >= 0
