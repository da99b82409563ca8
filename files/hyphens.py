"""Tells whether a hyphen at a line's end is the word's own, by how few pieces of BERT's vocabulary make it up.

`wordpieces.txt.gz` has that vocabulary's pieces of lower-case letters (Apache-2.0): `water`, `##bail`.
"""

import functools
import gzip
from importlib.resources import files

WORD_LETTERS = 4  # letters of a part that is a word by itself, not a syllable


def is_own(before: str, after: str) -> bool:
    """Returns whether the hyphen stays: `water-` and `bailiff` keep it, `Tues-` and `days` are one word."""
    if len(before) < WORD_LETTERS or len(after) < WORD_LETTERS or not before.isascii():
        return False
    first, second, both = (_pieces(word.lower()) for word in (before, after, before + after))
    return first == 1 and (first + second < both or (second == 1 and both > 1))


@functools.lru_cache(10_000)
def _pieces(word: str) -> int:
    """Returns the pieces of a word, each the longest that begins where the one before ends; 1 where none does."""
    count, start = 0, 0
    while start < len(word):
        head = "##" if start else ""
        ends = range(len(word), start, -1)
        end = next((end for end in ends if head + word[start:end] in _vocabulary()), None)
        if end is None:
            return 1
        count, start = count + 1, end
    return count


@functools.cache
def _vocabulary() -> frozenset[str]:
    packed = files("shardqa.files").joinpath("wordpieces.txt.gz").read_bytes()
    return frozenset(gzip.decompress(packed).decode().split())
