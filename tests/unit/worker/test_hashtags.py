"""Tags of slots, equal to RedisGears' own."""

from hypothesis import given
from hypothesis import strategies as st

from shardqa.worker import hashtags


@given(st.integers(0, 16383))
def test_the_tag_of_a_slot_hashes_to_that_slot(slot: int) -> None:
    assert hashtags.slot_of_tag(hashtags.tag_of_slot(slot)) == slot


def test_known_tags_are_those_of_redisgears() -> None:
    assert [hashtags.tag_of_slot(slot) for slot in (0, 1, 2, 3)] == ["06S", "Qi", "5L5", "4Iu"]


def test_the_hash_is_redis_clusters() -> None:
    assert hashtags.slot_of_tag("123456789") == 0x31C3 % 16384


def test_no_tag_is_longer_than_three_characters() -> None:
    assert max(map(len, hashtags.tags())) == 3
