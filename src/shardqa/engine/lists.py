"""Finds the list of a document that an answer's excerpts are neighbours in: then all of it is the answer. Pure
functions."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from statistics import fmean

from shardqa import analysis
from shardqa.analysis import content
from shardqa.answer_forms import asks_for_several
from shardqa.engine.parts import Excerpt, distinct
from shardqa.models.metrics import normalise

ITEM = re.compile(
    r"^[ \t]*(?P<mark>[-*+•]|(?P<number>\d{1,3})[.)])[ \t]+\S[^\n]*(?:\n[ \t]+[^\s\d*+•-][^\n]*)*", re.MULTILINE
)
ORDER = re.compile(r"^(?:please )?(?:list|name|give|enumerate) ")
OF_CLAUSE = r"(?:clause|section|article|paragraph|rule|item|point|§+)"
CLAUSE = re.compile(rf"(?<!\w){OF_CLAUSE}\s*(?:no\.? ?|number )?(?P<number>\d+(?:\.\d+)*)", re.IGNORECASE)
SAYS = "say state mean read contain provide require regulate stipulate cover tell rule"
HEADED = 0.8  # probability that a list is meant whose heading is all that is asked for
HEADING = 6  # words at most of a line without a colon that is like a heading
MAX_LIST = 2_000  # characters of a list that is shown whole


def whole(excerpts: Sequence[Excerpt], sentences: Sequence[Excerpt], question: str) -> Excerpt | None:
    """The list that most excerpts stand in, two in items side by side, or one in a list that the question asks for by
    the line above it.

    Its score is the mean of its items', of each the likeliest of what was read in it.
    """
    terms = set(analysis.query(question).content)
    for best in sorted(excerpts, key=lambda one: -one.score):
        text, first = best.passage.text, best.passage.start
        for items in _lists(text):
            extents = [(first + start, first + end) for start, end in items]
            above = _line_above(text, items[0][0])
            inside = [one for one in excerpts if _is_within(one, best, (first + above, extents[-1][1]))]
            numbers = [n for n, extent in enumerate(extents) if any(_is_within(one, best, extent) for one in inside)]
            are_neighbours = numbers[1:] and numbers[-1] - numbers[0] < len(numbers) and 2 * len(inside) > len(excerpts)
            terms_above = terms & content(text[above : items[0][0]])
            is_asked = inside and 2 * len(terms_above) >= len(terms) > 0
            if (are_neighbours or is_asked) and extents[-1][1] - extents[0][0] <= MAX_LIST:
                every = [*excerpts, *sentences]
                scores = [max([one.score for one in every if _is_within(one, best, at)], default=0.0) for at in extents]
                return replace(best, start=extents[0][0], end=extents[-1][1], score=fmean(scores))
    return None


def numbered(sentences: Sequence[Excerpt], question: str) -> list[Excerpt]:
    """The clause, with those below it, that a question asks for by its number and nothing else but the title."""
    if (asked := CLAUSE.search(question)) is None:
        return []
    number, left = re.escape(asked["number"]), set(analysis.query(question).content) - content(f"{asked[0]} {SAYS}")
    other = rf"[ \t]*(?:§ ?)?(?!{number}\.\d)\d+(?:\.\d+)*[.):]?[ \t]"
    clause = re.compile(rf"^[ \t]*(?:{OF_CLAUSE} ?)?{number}[.):]?[ \t]+\S.*(?:\n(?!{other}).*)*", re.I | re.MULTILINE)
    for one in sentences:
        if (match := clause.search(one.passage.text)) and left <= content(one.passage.title):
            text = match[0].rstrip()
            text = text.partition("\n\n")[0] if "." in number else text
            start = one.passage.start + match.start()
            return [replace(one, start=start, end=start + len(text), score=HEADED)]
    return []


def headed(sentences: Sequence[Excerpt], question: str) -> list[Excerpt]:
    """The items below a heading, or a line that is like one, that is the question, or names what a question for
    several things asks for beside the title and the outer headings: the rules of corrie ball are what stands below
    "Rules".
    """
    terms = content(ORDER.sub("", question)) if asks_for_several(question) else set[str]()
    words = normalise(question) or question
    passages: dict[str, Excerpt] = {}
    for one in sentences:
        passages.setdefault(one.passage.key, one)
    blocks = [(block, line) for one in passages.values() for block, line in _blocks(one)]
    for block, line in blocks:
        *outer, heading = _headings(block)
        left = terms - content(" ".join(outer))
        if words == normalise(heading) or (left and left <= content(heading)):
            every = [item for other, _ in blocks if _headings(other) == _headings(block) for item in other]
            items = [item for item in every if item.document == block[0].document]
            return list(distinct(sorted(items, key=lambda item: (item.start, -item.end))))
        is_heading = line.endswith(":") or (len(line.split()) <= HEADING and line[-1:] not in ".!?")
        if words == normalise(line) or (left and is_heading and left <= content(f"{line} {heading}")):
            return block
    return []


def _headings(block: Sequence[Excerpt]) -> list[str]:
    return [block[0].passage.title, *((block[0].place or {}).get("headings") or ())]


def _blocks(one: Excerpt) -> Iterator[tuple[list[Excerpt], str]]:
    """Each list of a passage by its items, and the line above it."""
    text, first = one.passage.text, one.passage.start
    for items in _lists(text):
        begin = items[0][0]
        line = text[_line_above(text, begin) : begin].strip()
        yield [replace(one, start=first + start, end=first + end, score=HEADED) for start, end in items], line


def _line_above(text: str, at: int) -> int:
    return text.rfind("\n", 0, len(text[:at].rstrip())) + 1


def _is_within(excerpt: Excerpt, best: Excerpt, extent: tuple[int, int]) -> bool:
    return excerpt.document == best.document and extent[0] <= excerpt.start < extent[1]


def _lists(text: str) -> list[list[tuple[int, int]]]:
    """The characters of each item of each list of two items or more: marked alike, nothing but blanks between them."""
    every: list[list[re.Match[str]]] = []
    for item in ITEM.finditer(text):
        before = every[-1][-1] if every else None
        if before is None or text[before.end() : item.start()].strip() or not _goes_on(before, item):
            every.append([])
        every[-1].append(item)
    return [[item.span() for item in items] for items in every if len(items) > 1]


def _goes_on(before: re.Match[str], item: re.Match[str]) -> bool:
    if before["number"] and item["number"]:
        return int(item["number"]) > int(before["number"])
    return before["number"] == item["number"]
