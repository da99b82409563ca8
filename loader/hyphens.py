"""Tells whether a hyphen at a line's end is the word's own, by the words that the shipped reader knows."""

import functools

from shardqa.models import shipped
from shardqa.models.tokenizer import Tokenizer

WORD_LETTERS = 4  # letters of a part that is a word by itself, not a syllable


def is_own(before: str, after: str) -> bool:
    """Returns whether the hyphen stays: `water-` and `bailiff` keep it, `Tues-` and `days` are one word."""
    if len(before) < WORD_LETTERS or len(after) < WORD_LETTERS or not before.isascii():
        return False
    first, second, both = (_pieces(word) for word in (before, after, before + after))
    return first == 1 and (first + second < both or (second == 1 and both > 1))


@functools.lru_cache(10_000)
def _pieces(word: str) -> int:
    return len(_tokenizer().passage(word))


@functools.cache
def _tokenizer() -> Tokenizer:
    return Tokenizer.load(shipped.folder())
