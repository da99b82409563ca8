"""Titles, sources and places of files' documents, cut to what a shard takes; each cut is told as lost."""

from collections.abc import Iterable, Iterator
from itertools import chain

from shardqa import checks, places
from shardqa.files.source_file import Item, Lost, printable
from shardqa.places import Mark, Place
from shardqa.schema import Document

MEASURED_CHARACTERS = 500  # characters of a place's words from which it is measured: as JSON each may take six bytes
NUMBERS = ("page", "slide", "row", "line")  # of a place, which stay where its words are too long


def fitting(items: Iterable[Item]) -> Iterator[Item]:
    """Yields the items with titles, sources and places within bounds; after each, a Lost for each cut."""
    for item in items:
        yield from _fitted(item) if isinstance(item, Document) else (item,)


def _fitted(document: Document) -> Iterator[Item]:
    source, losses = printable(document.source), list[Lost]()
    update = dict[str, object]()
    for name in ("title", "source"):
        words, most = getattr(document, name), checks.BOUNDS[name]
        size = len(words.encode(errors="replace"))
        if size > most:
            update[name] = words.encode(errors="replace")[:most].decode(errors="ignore")
            losses.append(Lost(source[:200], f"its {name} of {size:,} bytes was cut to {most:,}"))
    marks = [_fitted_mark(mark) for mark in document.places]
    cuts = sum(new is not old for new, old in zip(marks, document.places, strict=True))
    if cuts:
        update["places"] = marks
        reason = f"cells or outer headings of {cuts:,} places are not told: more than {places.MAX_PLACE:,} bytes each"
        losses.append(Lost(source[:200], reason))
    yield document.model_copy(update=update) if update else document
    yield from losses


def _fitted_mark(mark: Mark) -> Mark:
    """Returns the mark within its bound: without its cells, then its outer headings, then any words."""
    start, place = mark
    words = [*chain.from_iterable(place.cells or ()), *place.headings, place.part or "", place.sheet or ""]
    if sum(map(len, words)) < MEASURED_CHARACTERS:
        return mark
    if places.size_of(place) > places.MAX_PLACE:
        place = place.model_copy(update={"cells": None})
    while (is_long := places.size_of(place) > places.MAX_PLACE) and place.headings:
        place = place.model_copy(update={"headings": place.headings[1:]})
    if is_long:
        place = Place(**{name: getattr(place, name) for name in NUMBERS})
    return mark if place is mark[1] else (start, place)
