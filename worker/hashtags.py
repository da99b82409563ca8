"""Slot -> the tag RedisGears' `hashtag()` gives for it: the shortest string of 0-9A-Za-z that hashes to the slot,
the first in that order among equals ('06S' for slot 0)."""

import functools
import itertools
import string
from binascii import crc_hqx  # CRC-16/XMODEM, the one of Redis Cluster

SLOTS = 16384
ALPHABET = string.digits + string.ascii_uppercase + string.ascii_lowercase


def slot_of_tag(tag: str) -> int:
    return crc_hqx(tag.encode(), 0) % SLOTS


@functools.cache
def tags() -> tuple[str, ...]:
    """The tag of every slot, by slot; built once (three characters reach every slot)."""
    by_slot: dict[int, str] = {}
    for length in (1, 2, 3):
        for letters in itertools.product(ALPHABET, repeat=length):
            tag = "".join(letters)
            by_slot.setdefault(slot_of_tag(tag), tag)
    assert len(by_slot) == SLOTS
    return tuple(by_slot[slot] for slot in range(SLOTS))


def tag_of_slot(slot: int) -> str:
    return tags()[slot]
