"""From a document's text to passages: overlapping windows on sentence boundaries, with exact places and word pieces.

Pure functions, any thread; time and memory are linear in the text. The text is cut into blocks (so that neither the
sentence finder nor the tokenizer ever sees more than `BLOCK` characters), each block is tokenised once, and passages
are slices of those pieces. A cut is only made where a word begins, so a passage's pieces are those of its text alone.
A passage holds what stands under one heading or entry, or several short ones side by side: none is torn from what it
heads. A row of a table with many cells is a passage, since a reader takes a cell of the row above for one of its own.
What leads in (a line before deeper ones, one that ends in a colon) is never the last of a passage.

Rejected: greedy packing (leaves a tiny last passage); windows of a fixed number of pieces (cut sentences, and with
them answers and what the reader needs to find them).
"""

import itertools
import re
from bisect import bisect_right
from collections.abc import Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import sentencex
from numpy.typing import NDArray

from shardqa import places
from shardqa.gears_functions import asides, windows
from shardqa.models.tokenizer import Tokenizer

VERSION = 8  # part of a document's digest: raise it when the same document would become other passages

WINDOW = 128  # word pieces a passage aims at: a few sentences, what a reader trained on paragraphs expects
OVERLAP = 24  # word pieces two neighbours share at least: about a sentence, so that no answer loses its context
ALONE = 192  # a document of at most this many word pieces stays in one passage: cutting it would only lose context
# Word pieces that short neighbours under one heading have together in a passage, at most. Of 66 questions after
# defaults in PostgreSQL's configuration chapter 53 are answered from the right entry with 128, 56 with 64, 57 with 32,
# which makes a tenth more passages.
JOINED = WINDOW // 2
MAX_PASSAGE = 320  # word pieces; with a question of 128 and three special tokens a row stays below the reader's 512
MAX_UNIT = 90  # word pieces; a longer sentence is cut between words, so WINDOW + two units never pass MAX_PASSAGE
BLOCK = 32_768  # characters tokenised at a time: bounds the tokenizer's memory, large enough to keep its speed
SLICE = 1_024  # passages made in one step: about as long as a block's tokens take, 20 to 50 ms
LEAD = 200  # characters of a line that may lead in what follows
MAX_RUN = 1_000  # characters without a blank that stay whole; past it (base64, a list of numbers) they are cut
MAX_GAP = 1_000  # blank or ignored characters inside a passage; past it a passage ends, so that its text stays short
CHARACTERS_PER_PIECE = 24  # a piece of more characters than this weighs more than one, which bounds a passage's text

SHORT_TEXT = min(MAX_RUN, MAX_GAP)  # characters of a text that has neither a cut nor a gap inside a window

A_WORD = re.compile(r"[^\W_]")  # a part of one: without any, a passage can't be found, nor answer
LONG_RUN = re.compile(rf"(?<!\S)\S{{{MAX_RUN + 1},}}")  # from where a run begins alone: linear in the text
RUN = re.compile(r"[!-~]{200,}")  # no language's word (base64): what stands behind it begins a passage
ITEM = re.compile(r"\s*(?:[-*+•]|\d{1,3}[.)])\s")  # of a list
LAST_BREAK = re.compile(r"[^\w\s](?=\w*\Z)")  # the last place in a run where a word surely ends


@dataclass(frozen=True, slots=True)
class Passage:
    """A window of a document."""

    start: int  # characters of the document, half open: document[start:end] == text
    end: int
    text: str
    ids: NDArray[np.int32]  # word pieces of `text` without special tokens, int32 [n], 1 <= n <= MAX_PASSAGE
    path: tuple[str, ...] = ()  # the headings and the entry that all of it stands under, outermost first


@dataclass(frozen=True, slots=True)
class _Pieces:
    """The word pieces of a whole document."""

    ids: NDArray[np.int32]  # [n]
    starts: NDArray[np.int64]  # [n] first character of each piece
    ends: NDArray[np.int64]  # [n] one past its last character
    heads: NDArray[np.bool_]  # [n] whether the piece begins a word
    cuts: NDArray[np.int64]  # sorted piece numbers at which a sentence begins, from 0, without n
    forced: list[int]  # characters where a run without blanks was cut: pieces beside them may not be those of the text


@dataclass(frozen=True, slots=True)
class _Section:
    """A run of pieces that becomes passages of its own."""

    first: int
    last: int  # one past its last
    path: tuple[str, ...]
    is_head: bool = False  # nothing but the heading itself
    is_row: bool = False  # of a table: it stays alone


def split(text: str, tokenizer: Tokenizer, marks: Sequence[list[Any]] = ()) -> list[Passage]:
    """Cuts `text` into passages in order; none when there is no word in it.

    What lies outside of all passages is what the tokenizer ignores, what has no word (a million dots), what its places
    (`marks`) say is not searched, and what `asides` finds by its form; a text that is nothing else than these last two
    is cut all the same. Each passage has at most MAX_PASSAGE pieces, and `tokenizer.passage(passage.text).ids` equals
    its ids. Raises BadDocument on lone surrogates.
    """
    return [passage for part in split_in_slices(text, tokenizer, marks) for passage in part]


def split_in_slices(text: str, tokenizer: Tokenizer, marks: Sequence[list[Any]] = ()) -> Iterator[list[Passage]]:
    """Cuts as `split` does, a slice of the work at each step, so that others come in between.

    While the text is tokenised each step takes a block and has no passages yet, then each has at most SLICE. Any thread
    may take the next step.
    """
    if next(windows.matches(A_WORD, text, 1), None) is None:
        return  # millions of dots, say
    if (whole := _whole(text, tokenizer, marks)) is not None:
        yield [whole]
        return
    pieces = yield from _tokenise(text, tokenizer)
    if not len(pieces.ids):
        return
    mass = _mass(pieces)
    passages = list[Passage]()
    runs = [run.end() for run in windows.matches(RUN, text, 200)]
    yield []  # millions of pieces take a second until here, and another below
    aside = list(places.asides(marks, len(text)))
    for rule in asides.RULES:
        aside += rule(text)
        yield []
    ranges = _ranges(pieces, asides.union(aside), runs)
    yield []
    for section in _sections(text, pieces, mass, ranges, places.sections(marks)):
        for first, last in _windows(mass, _units(text, pieces, mass, section.first, section.last)):
            if A_WORD.search(text, int(pieces.starts[first]), int(pieces.ends[last - 1])):
                passages.append(_passage(text, tokenizer, pieces, section.path, first, last))
            if len(passages) == SLICE:
                yield passages
                passages = []
    yield passages


def _whole(text: str, tokenizer: Tokenizer, marks: Sequence[list[Any]]) -> Passage | None:
    """Returns the passage that a short text surely is, a row of a table, say; None where it has to be cut to know."""
    sections = places.sections(marks)
    if (
        len(text) > SHORT_TEXT
        or len(sections) > 1
        or RUN.search(text)
        or asides.ranges(text, places.asides(marks, len(text)))
    ):
        return None
    ids, start, end = tokenizer.short(text)
    if len(ids) + len(text) // CHARACTERS_PER_PIECE > ALONE or (sections and sections[0][0] > start):
        return None
    if not A_WORD.search(text, start, end):
        return None
    return Passage(start, end, text[start:end], ids, sections[0][1] if sections else ())


def _passage(text: str, tokenizer: Tokenizer, pieces: _Pieces, path: tuple[str, ...], first: int, last: int) -> Passage:
    start, end = int(pieces.starts[first]), int(pieces.ends[last - 1])
    ids = pieces.ids[first:last]
    cut = bisect_right(pieces.forced, start)
    if cut < len(pieces.forced) and pieces.forced[cut] < end:
        ids = tokenizer.passage(text[start:end]).ids
    return Passage(start, end, text[start:end], ids, path)


# ---- characters: blocks


def _blocks(text: str) -> tuple[list[int], list[int]]:
    """Returns (where blocks end, where runs without blanks were cut), in characters, rising."""
    cuts = [cut for run in windows.matches(LONG_RUN, text, MAX_RUN + 1) for cut in _run_cuts(text, *run.span())]
    ends, start = list[int](), 0
    while start < len(text):
        start = _block_end(text, start, cuts)
        ends.append(start)
    return ends, cuts


def _run_cuts(text: str, start: int, end: int) -> Iterator[int]:
    """Cuts so that no part of a run has more than MAX_RUN characters; the last has at least a quarter of that.

    The tokenizer makes one unknown piece of a word of more than 100 characters: parts must stay longer.
    """
    while end - start > MAX_RUN:
        size = MAX_RUN if end - start >= 1.25 * MAX_RUN else (end - start) // 2
        match = LAST_BREAK.search(text, start + size // 2, start + size)
        start = match.end() if match else start + size
        yield start


def _block_end(text: str, start: int, cuts: list[int]) -> int:
    """Returns the end of the block from `start`: after a paragraph, else a line, else a blank, else a forced cut."""
    limit = start + BLOCK
    if limit >= len(text):
        return len(text)
    for separator in ("\n\n", "\n", " "):
        at = text.rfind(separator, start + BLOCK // 2, limit)
        if at >= 0:
            return at + len(separator)
    cut = bisect_right(cuts, limit)
    if cut and cuts[cut - 1] > start:
        return cuts[cut - 1]
    blank = max((n for n in range(start + 1, limit) if text[n].isspace()), default=limit - 1)
    return blank + 1


# ---- word pieces and sentences


def _tokenise(text: str, tokenizer: Tokenizer) -> Generator[list[Passage], None, _Pieces]:
    """Returns the pieces of the text; yields no passages after each block, so that others come in between."""
    ids, starts, ends, heads, cuts = [], [], [], [], []
    block_ends, cuts_of_runs = _blocks(text)
    begin, count, blocks = 0, 0, set(block_ends)
    for block_end in sorted({*block_ends, *cuts_of_runs}):
        block = text[begin:block_end]
        tokens = tokenizer.passage(block)
        first = np.ones(len(tokens), dtype=np.bool_)
        first[1:] = tokens.words[1:] != tokens.words[:-1]
        ids.append(tokens.ids)
        starts.append(tokens.offsets[:, 0].astype(np.int64) + begin)
        ends.append(tokens.offsets[:, 1].astype(np.int64) + begin)
        heads.append(first)
        cuts.append(count + _sentence_cuts(block, tokens.offsets[:, 0], first))
        begin, count = block_end, count + len(tokens)
        if block_end in blocks and block_end < len(text):
            yield []
    offsets = _once(np.concatenate(cuts)) if cuts else np.zeros(0, dtype=np.int64)
    empty = np.zeros(0, dtype=np.int64)
    return _Pieces(
        np.concatenate(ids) if ids else empty.astype(np.int32),
        np.concatenate(starts) if starts else empty,
        np.concatenate(ends) if ends else empty,
        np.concatenate(heads) if heads else empty.astype(np.bool_),
        offsets[offsets < count],
        cuts_of_runs,
    )


def _sentence_cuts(block: str, starts: NDArray[np.int32], heads: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Returns the numbers of the block's pieces at which a sentence begins."""
    sentences = sentencex.get_sentence_boundaries("en", block)
    cuts = np.searchsorted(starts, [sentence["start_index"] for sentence in sentences])
    cuts = cuts[cuts < len(starts)]
    return np.asarray(cuts[heads[cuts]], dtype=np.int64)


def _mass(pieces: _Pieces) -> NDArray[np.int64]:
    """Sums the weight of all pieces before each one, int64 [n + 1]; a piece of many characters weighs more than one."""
    weights = np.clip((pieces.ends - pieces.starts) // CHARACTERS_PER_PIECE, 1, MAX_RUN // CHARACTERS_PER_PIECE)
    return np.concatenate([[0], np.cumsum(weights)])


def _once(numbers: NDArray[np.int64]) -> NDArray[np.int64]:
    """Sorts the values, each once; numpy's own `unique` keeps the interpreter's lock."""
    numbers = np.sort(numbers)
    return np.asarray(numbers[np.append(numbers[1:] != numbers[:-1], True)])


# ---- sections


def _ranges(pieces: _Pieces, aside: Sequence[tuple[int, int]], runs: Sequence[int]) -> list[tuple[int, int]]:
    """Returns the ranges of pieces between gaps too long for a passage and ends of `runs`, without those `aside`."""
    count = len(pieces.ids)
    gaps = np.flatnonzero(pieces.starts[1:] - pieces.ends[:-1] > MAX_GAP) + 1
    heads = np.append(np.flatnonzero(pieces.heads), count)  # a passage begins and ends with a word
    out = np.searchsorted(pieces.starts, np.asarray(aside, dtype=np.int64).reshape(-1, 2))
    out[:, 0] = heads[np.maximum(np.searchsorted(heads, out[:, 0], "right") - 1, 0)]
    out[:, 1] = heads[np.searchsorted(heads, out[:, 1])]
    is_out = np.zeros(count + 1, dtype=np.bool_)
    for begin, end in out:
        is_out[begin:end] = True
    behind = heads[np.searchsorted(heads, np.searchsorted(pieces.starts, np.asarray(runs, dtype=np.int64)))]
    edges = _once(np.concatenate([[0], gaps, out.ravel(), behind, [count]]))
    sections = list(itertools.pairwise(edges.tolist()))
    return [section for section in sections if not is_out[section[0]]] or sections


def _sections(
    text: str,
    pieces: _Pieces,
    mass: NDArray[np.int64],
    ranges: Sequence[tuple[int, int]],
    marks: Sequence[tuple[int, tuple[str, ...], bool]],
) -> Iterator[_Section]:
    """Cuts ranges where another heading or entry begins, and puts short ones together (`_joined`)."""
    heads = np.append(np.flatnonzero(pieces.heads), len(pieces.ids))
    begins = np.searchsorted(pieces.starts, [start for start, *_ in marks])
    begins = heads[np.searchsorted(heads, begins)] if len(marks) else begins
    for first, last in ranges:
        inner = begins[np.searchsorted(begins, first, "right") : np.searchsorted(begins, last)]
        section: _Section | None = None
        for begin, end in itertools.pairwise(_once(np.array([first, *inner, last])).tolist()):
            n = int(np.searchsorted(begins, begin, "right"))
            _, path, is_row = marks[n - 1] if n else (0, (), False)
            words = text[pieces.starts[begin] : pieces.ends[end - 1]].split(maxsplit=200)
            is_head = not is_row and bool(path) and len(words) <= len(path[-1].split())
            following = _Section(begin, end, path, is_head, is_row)
            if section is None:
                section = following
            elif (both := _joined(section, following, mass)) is not None:
                section = both
            else:
                yield section
                section = following
        if section is not None and not (section.is_head and last < ranges[-1][1]):  # of contents, say: a path has it
            yield section


def _joined(before: _Section, after: _Section, mass: NDArray[np.int64]) -> _Section | None:
    """Returns two sections as one: a heading with what follows it, or short neighbours under one; else None."""
    if before.is_row or after.is_row:
        return after if before.is_head else None
    if before.is_head:
        return _Section(before.first, after.last, after.path, after.is_head)
    pairs = itertools.takewhile(lambda pair: pair[0] == pair[1], zip(before.path, after.path, strict=False))
    common = tuple(heading for heading, _ in pairs)
    if len(common) < len(before.path) - 1 or mass[after.last] - mass[before.first] > JOINED:
        return None
    return _Section(before.first, after.last, common)


# ---- windows


def _units(text: str, pieces: _Pieces, mass: NDArray[np.int64], first: int, last: int) -> NDArray[np.int64]:
    """Returns the edges of what windows are made of: sentences with what leads them in, and parts of long ones.

    The first and the last edge are `first` and `last`.
    """
    inner = pieces.cuts[np.searchsorted(pieces.cuts, first, "right") : np.searchsorted(pieces.cuts, last)].tolist()
    begins = [first]
    for edge, following in itertools.pairwise([*inner, last]):
        is_short = mass[following] - mass[begins[-1]] <= MAX_UNIT
        if not (is_short and _leads_in(text, int(pieces.ends[edge - 1]), int(pieces.starts[edge]))):
            begins.append(edge)
    edges = np.array([*begins, last], dtype=np.int64)
    long = np.flatnonzero(mass[edges[1:]] - mass[edges[:-1]] > MAX_UNIT)
    parts = [_sentence_parts(pieces.heads, mass, int(edges[n]), int(edges[n + 1])) for n in long]
    return _once(np.concatenate([edges, *parts]))


def _leads_in(text: str, end: int, start: int) -> bool:
    """Returns whether the line before `end` heads what starts at `start`: a list, a deeper indent, or after a colon."""
    first = max(0, end - LEAD)
    line = text[max(text.rfind("\n", first, end) + 1, first) : end]
    _, line_end, indent = text[end:start].rpartition("\n")
    if not line_end or len(line) >= LEAD:
        return False
    begins_list = ITEM.match(text, start, start + 5) is not None and ITEM.match(line) is None
    if begins_list or line.endswith((":", "?")) or len(indent) > len(line) - len(line.lstrip()):
        return True
    return text.count("\n", end, start) > 1 and line[-1:].isalnum() and len(line) <= LEAD // 3


def _sentence_parts(heads: NDArray[np.bool_], mass: NDArray[np.int64], first: int, last: int) -> NDArray[np.int64]:
    """Returns the edges of a sentence's parts, of nearly equal weight; above MAX_UNIT is only a single longer word."""
    words = first + np.flatnonzero(heads[first:last])
    before = mass[words]
    cuts, start = [], first
    while (weight := int(mass[last] - mass[start])) > MAX_UNIT:
        part = weight / -(-weight // MAX_UNIT)
        place = int(np.searchsorted(before, mass[start] + part, "right")) - 1
        if words[place] <= start:  # a single word is longer: it stays whole
            place += 1
        if place >= len(words):
            break
        start = int(words[place])
        cuts.append(start)
    return np.asarray(cuts, dtype=np.int64)


def _windows(mass: NDArray[np.int64], edges: NDArray[np.int64]) -> list[tuple[int, int]]:
    """Returns windows as ranges of pieces, evenly spread: each begins and ends at the edge nearest to its ideal place.

    Each begins at the edge before it. Even spreading leaves no short last window. Ideal places overlap by OVERLAP, and
    rounding keeps their order, so windows leave nothing out.
    """
    places = mass[edges] - mass[edges[0]]
    total = int(places[-1])
    if total <= ALONE:
        return [(int(edges[0]), int(edges[-1]))]
    count = -(-(total - OVERLAP) // (WINDOW - OVERLAP))
    ideal = np.arange(count) * ((total - OVERLAP) / count)
    begins = np.searchsorted(places, ideal, "right") - 1
    stops = _nearest(places, ideal + (total - OVERLAP) / count + OVERLAP)
    stops[-1] = len(edges) - 1
    ranges = zip(begins.tolist(), np.maximum(stops, begins + 1).tolist(), strict=True)
    return [(int(edges[a]), int(edges[b])) for a, b in _without_contained(ranges)]


def _nearest(places: NDArray[np.int64], ideal: NDArray[np.floating[Any]]) -> NDArray[np.int64]:
    after = np.clip(np.searchsorted(places, ideal), 1, len(places) - 1)
    before = after - 1
    return np.where(ideal - places[before] < places[after] - ideal, before, after)


def _without_contained(ranges: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Drops ranges that lie within another; `ranges` are sorted."""
    outer: list[tuple[int, int]] = []
    for begin, stop in ranges:
        if outer and outer[-1][0] == begin:
            outer.pop()
        if not outer or stop > outer[-1][1]:
            outer.append((begin, stop))
    return outer
