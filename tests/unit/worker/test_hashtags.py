"""Tags of slots, equal to RedisGears' own."""

from redis.crc import key_slot

from shardqa.worker.nodes import tags


def test_the_tag_of_a_slot_hashes_to_that_slot() -> None:
    assert [key_slot(tag.encode()) for tag in tags()] == list(range(16_384))


def test_known_tags_are_those_of_redisgears() -> None:
    assert tags()[:4] == ("06S", "Qi", "5L5", "4Iu")


def test_no_tag_is_longer_than_three_characters() -> None:
    assert max(map(len, tags())) == 3
