"""Finds where the terms of a question stand in a text: character ranges, exact for any Unicode.

The same analysis as the index's, with the place of each folded character kept. One thread, as `analysis` says.
"""

import unicodedata
from collections.abc import Collection, Iterator

from shardqa import analysis
from shardqa.analysis import Query

Range = tuple[int, int]


def matched(text: str, query: Query) -> list[tuple[int, int, str]]:
    """Returns (start, end, term) of each word of the text that the question looks for, in order."""
    terms: Collection[str] = set(query.terms)
    words = list(located(text))
    stems = analysis.stems([word for _, _, word in words])
    return [(start, end, term) for (start, end, _), term in zip(words, stems, strict=True) if term in terms]


def located(text: str) -> Iterator[tuple[int, int, str]]:
    """Yields (start, end, folded word) of all words, in order: the words are those of `analysis.words`."""
    plain, places = _folded(text)
    pattern = analysis.WORD if analysis.MARKS_MATTER.search(plain) else analysis.PLAIN
    has_marks = pattern is analysis.WORD
    for match in pattern.finditer(plain):
        word = match[0].replace(",", "")
        at = (places[match.start()][0], places[match.end() - 1][1])
        for form in analysis.forms(word) if has_marks else (word,):
            if text.isascii():
                yield (*at, form)
            else:
                yield from _parts(form, match.start(), at, places)


def _parts(word: str, start: int, at: Range, places: list[Range]) -> Iterator[tuple[int, int, str]]:
    """Yields a word; of what is written without blanks each part, with its own place."""
    parts = analysis.parts(word)
    if parts == [word]:
        yield (*at, word)
        return
    begin = 0
    for part in parts:
        begin = word.index(part, begin)
        yield (places[start + begin][0], places[start + begin + len(part) - 1][1], part)


def _folded(text: str) -> tuple[str, list[Range]]:
    """Returns the text as `analysis.words` looks at it, and for each character of that its range in the text."""
    pieces, places = list[str](), list[Range]()
    powers = {place: "^" for match in analysis.POWER.finditer(text) for place in [match.start()]}
    inside = {n for match in analysis.POWER.finditer(text) for n in range(*match.span())}
    for n, character in enumerate(text):
        own = "-" if n in inside and character == "⁻" else character
        for piece in powers.get(n, "") + _fold(own):
            pieces.append(piece)
            places.append((n, n + 1))
    return _without_possessives("".join(pieces), places)


def _fold(character: str) -> str:
    if character.isascii():
        return character.lower()
    return unicodedata.normalize("NFKD", character).translate(analysis.marks()).casefold()


def _without_possessives(text: str, places: list[Range]) -> tuple[str, list[Range]]:
    ranges, last = list[tuple[int, int]](), 0
    for match in analysis.POSSESSIVE.finditer(text):
        ranges.append((last, match.start()))
        last = match.end()
    if not ranges:
        return text, places
    ranges.append((last, len(text)))
    return "".join(text[a:b] for a, b in ranges), [place for a, b in ranges for place in places[a:b]]
