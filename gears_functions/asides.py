"""Finds what a text keeps and no question asks for, by its form: contents with dot leaders, indexes, licences.

Readers of files mark what a file's markup tells (`Place.aside`); the rules here hold for whoever puts a document. Pure
functions, linear in the text.
"""

import io
import re
from collections.abc import Iterable, Iterator, Sequence

from shardqa.gears_functions import windows

LEADER = re.compile(r"(?<![.…])(?<!\.[ \t])(?:(?:\.[ \t]?){4,}|…{2,}+)[ \t]*+(?:\d{1,4}|[ivxlc]{1,6})\b")
LEADER_SIGNS = ("..", ". .", ".\t.", "……")
LEADERS = 3  # entries from which it is a table of contents
LEADER_GAP = 240  # characters from one entry's leader to the next: a title over two or three lines
BEFORE = 160  # characters before the first leader that may be its title
PAGES = r"\d{1,4}(?:[-–]\d{1,4})?n?"
ENTRY = re.compile(rf"[^\n]{{1,80}}?,? {PAGES}(?:, {PAGES})*")  # of a book's index: words, then pages
MANY_PAGES = re.compile(rf"\d, {PAGES}\Z")
ENTRIES = 15  # lines from which it is an index of a book
LINE = 160  # characters of a line that may be an entry
LICENCE = re.compile(
    r"permission is (?:hereby )?granted[^\n]{0,40}(?:to copy|to use|free of charge|to make and distribute)"
    r"|redistribution and use in source and binary forms|redistributions (?:of source code|in binary form) must"
    r"|(?:provided|distributed)[^\n]{0,60}?(?:as is\b|without any warranty)"
    r"|without even the implied warranty"
    r"|in no event shall the (?:authors?|copyright|regents|contributors)"
    r"|(?:you should have received|see) a copy of the gnu"
    r"|you (?:can|may) (?:re)?distribute it and/or modify",
    re.IGNORECASE,
)
LICENCE_SIGNS = ("permission", "distribut", "provided", "without even", "in no event", "copy of the gnu")
PARAGRAPH = 2_000  # characters of a paragraph that may be a notice
PHRASE = 240  # characters of a leader, or of a notice's words, at most


def ranges(text: str, marks: Sequence[tuple[int, int]] = ()) -> list[tuple[int, int]]:
    """Returns the ranges of characters that are not searched, with those of `marks`: half open, rising, apart."""
    return union([*marks, *(place for rule in RULES for place in rule(text))])


def union(places: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    apart: list[tuple[int, int]] = []
    for begin, end in sorted(places):
        if apart and begin <= apart[-1][1]:
            apart[-1] = (apart[-1][0], max(end, apart[-1][1]))
        else:
            apart.append((begin, end))
    return apart


def _contents(text: str) -> Iterator[tuple[int, int]]:
    run: list[re.Match[str]] = []
    for match in windows.matches(LEADER, text, PHRASE, LEADER_SIGNS):
        if run and match.start() - run[-1].end() > LEADER_GAP:
            yield from _of_run(text, run)
            run = []
        run.append(match)
    yield from _of_run(text, run)


def _of_run(text: str, run: list[re.Match[str]]) -> Iterator[tuple[int, int]]:
    if len(run) >= LEADERS:
        first = run[0].start()
        yield max(text.rfind("\n", 0, first) + 1, first - BEFORE), run[-1].end()


def _index(text: str) -> Iterator[tuple[int, int]]:
    """Yields the ranges of indexes: lines of words and pages in alphabetical order, also with blank lines between."""
    entries = several = begin = end = at = 0
    last = ""
    if text.count("\n") < ENTRIES - 1:
        return
    for line in io.StringIO(text, newline=""):  # one after another: a text may be nothing but millions of line ends
        entry = line.strip()
        is_entry = bool(entry) and len(entry) <= LINE and ENTRY.fullmatch(entry) is not None
        if is_entry and entry[:1].casefold() >= last:
            begin = begin if entries else at
            entries, several, end = entries + 1, several + bool(MANY_PAGES.search(entry)), at + len(line)
            last = entry[:1].casefold()
        elif entry and not (len(entry) == 1 and entries):  # a letter stands above its entries
            if entries >= ENTRIES and several >= entries // 5:
                yield begin, end
            entries = several = 0
            last = ""
        at += len(line)
    if entries >= ENTRIES and several >= entries // 5:
        yield begin, end


def _notices(text: str) -> Iterator[tuple[int, int]]:
    """Yields the ranges of licences and disclaimers, by paragraphs; by lines where no blank line is near."""
    for match in windows.matches(LICENCE, text, PHRASE, LICENCE_SIGNS):
        first, last = max(0, match.start() - PARAGRAPH), min(len(text), match.end() + PARAGRAPH)
        begins = (text.rfind(edge, first, match.start()) for edge in ("\n\n", "\n"))
        ends = (text.find(edge, match.end(), last) for edge in ("\n\n", "\n"))
        yield next((at for at in begins if at >= 0), first), next((at for at in ends if at >= 0), last)


RULES = (_contents, _index, _notices)  # each takes a second for millions of characters
