"""Slips of the keys in a question: which words may hold one, and how far another word may be. Pure functions."""

import re
from collections.abc import Iterable, Mapping

from rapidfuzz.distance import OSA

from shardqa import analysis

LEAST = 5  # letters; a shorter word has too many neighbours
SHORT = 6  # letters from which a letter may also be another, or too many
LONG = 12  # letters from which two may be others: "calories" is no slip of "carries"
MAX_WORDS = 8  # of one question
WORD = re.compile(r"[^\W\d_]+")
QUOTED = re.compile(r'"[^"]*"|“[^”]*”|„[^“]*“|«[^»]*»')  # it is meant as it is written


def is_spelt(word: str) -> bool:
    return word.isalpha() and word.islower() and len(word) >= LEAST and word.isascii()


def room_of(word: str) -> int:
    """The letters of a word that may be wrong, left out, too many, or exchanged with the next."""
    return 1 if len(word) < LONG else 2


def best(word: str, found: Iterable[Mapping[str, int]]) -> str | None:
    """The word that is nearest, and of several the one that most passages have."""
    counts = dict[str, int]()
    for one in found:
        for other, count in one.items():
            counts[other] = counts.get(other, 0) + count
    near = [(OSA.distance(word, other), -count, other) for other, count in counts.items()]
    likely = [one for one in near if len(word) >= SHORT or len(one[2]) > len(word) or sorted(one[2]) == sorted(word)]
    return min((one for one in likely if 0 < one[0] <= room_of(word)), default=(0, 0, None))[2]


def corrected(text: str, words: Mapping[str, str]) -> str:
    """The text with these words in place of those, whatever their capitals."""
    return WORD.sub(lambda match: words.get(analysis.fold(match[0]), match[0]), text) if words else text
