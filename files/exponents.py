"""Exponents and indices as plain characters: 10^6, x_i, CO₂. Without a mark, 10 with a raised 6 would read 106."""

import re

SHORT_TERM = re.compile(r"[+\-−–]?(?:\d[\d.,]*|[^\W\d_])(?:[+\-−–])?")  # a number or one letter: an exponent, an ion
FORMULA = re.compile(r"[\w+\-−–*/., ]{1,24}")
DIGITS = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")


def raised(before: str, words: str) -> str:
    """Marks raised words after the character `before`: ^6; the th of 5th and the like stay as they are."""
    return _marked("^", before, words)


def lowered(before: str, words: str) -> str:
    """Marks lowered words: x_i; digits after a letter become CO₂, which is found as CO2 is."""
    if before.isalpha() and words.isascii() and words.isdigit():
        return words.translate(DIGITS)
    return _marked("_", before, words)


def _marked(mark: str, before: str, words: str) -> str:
    if not before or not (before.isalnum() or before in ")]}") or not words:
        return words
    if SHORT_TERM.fullmatch(words):
        return mark + words
    return f"{mark}({words})" if FORMULA.fullmatch(words) and not words.isalpha() else words
