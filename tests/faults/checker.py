"""Whether a history is one that a correct cluster can have: pure, after the fact.

Of each document a write may be what there is from its begin until some later acknowledged write has ended; later is
one that began after this one had ended. A write that was not acknowledged may take effect late: nothing supersedes it
but an acknowledged write that began after somebody had seen it. Everything that was seen must come from a write that
may have been there between the begin and the end of the look.

An answer that a process has kept may be a little older than that: by so long as the word of another process' write is
on its way. `lag` allows that much; `largest_lag` tells how much it was.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import inf
from typing import Literal

from tests.faults.history import Event, Look, Reply, Span, Write

Kind = Literal["lost", "resurrected", "stale", "unknown", "missed", "early"]
MEANINGS: dict[Kind, str] = {
    "lost": "a document that was acknowledged is gone",
    "resurrected": "a document that was deleted is there",
    "stale": "a text that was replaced is there",
    "unknown": "no version has this text at this place",
    "missed": "a document that was there is not among the candidates of its own question",
    "early": "a text was there before anybody wrote it",
}


@dataclass(frozen=True, slots=True)
class Violation:
    kind: Kind
    history: tuple[Event, ...]  # the shortest that shows it

    def __str__(self) -> str:
        return "\n".join([f"{self.kind}: {MEANINGS[self.kind]}", *(f"    {event}" for event in self.history)])


@dataclass(frozen=True, slots=True)
class Superseded:
    at: float  # nobody who begins after that may see it
    by: tuple[Event, ...]


NEVER = Superseded(inf, ())


class Document:
    """The writes of one document, and what was seen of it."""

    def __init__(self, name: str, writes: Iterable[Write], sights: Iterable[tuple[Span | Look, Event]]) -> None:
        nothing = Write(name, -1, None, -inf, -inf)  # before the first write
        self.writes = [nothing, *sorted(writes, key=lambda write: write.begin)]
        self.sights = sorted(sights, key=lambda sight: _end(sight[1]))
        self._acknowledged = [write for write in self.writes[1:] if write.end is not None]
        self._matches: dict[tuple[object, ...], list[Write]] = {}

    def matches(self, seen: Span | Look) -> list[Write]:
        """Writes that have this text, or lack any."""
        key = (seen.start, seen.end, seen.answer) if isinstance(seen, Span) else (seen.text,)
        if key not in self._matches:
            self._matches[key] = [write for write in self.writes if _has(write, seen)]
        return self._matches[key]

    @cached_property
    def superseded(self) -> dict[int, Superseded]:
        """By version."""
        return {write.version: self._superseded(write) for write in self.writes}

    def _superseded(self, write: Write) -> Superseded:
        since, sight = write.end, tuple[Event, ...]()
        if since is None:
            seen = self._first_sight(write)
            if seen is None:
                return NEVER
            since, sight = _end(seen), (seen,)
        later = [other for other in self._acknowledged if other.begin > since]
        first = min(later, key=_end, default=None)
        return NEVER if first is None else Superseded(_end(first), (*sight, first))

    def _first_sight(self, write: Write) -> Event | None:
        """The first sight of a write that was not acknowledged; only where nothing else can have been seen."""
        return next((event for seen, event in self.sights if self.matches(seen) == [write]), None)

    def too_late(self, seen: Span | Look, event: Event) -> float:
        """Seconds between the time from which nobody may see it and the look; 0 when all is well, else infinite."""
        ends = [self.superseded[write.version].at for write in self.matches(seen) if write.begin <= _end(event)]
        return max(0.0, event.begin - max(ends)) if ends else inf

    def violation(self, seen: Span | Look, event: Event) -> Violation:
        """The violation that a sight shows which is not possible."""
        matches = self.matches(seen)
        past = [write for write in matches if write.begin <= _end(event)]
        if not matches:
            return Violation("unknown", (*self._last_written(event), event))
        if not past:
            return Violation("early", (event, matches[0]))
        last = max(past, key=lambda write: self.superseded[write.version].at)
        by = self.superseded[last.version].by
        if last.text is None:  # so it was before the first write, too: only what came last matters
            gone = max((write for write in self._acknowledged if _end(write) < event.begin), key=_end)
            return Violation("missed" if isinstance(event, Reply) else "lost", (gone, event))
        return Violation("resurrected" if _removes(by[-1]) else "stale", (last, *by, event))

    def _last_written(self, event: Event) -> tuple[Write, ...]:
        before = [write for write in self.writes[1:] if write.begin <= _end(event)]
        return tuple(before[-1:])


def check(history: Sequence[Event], lag: float = 0.0) -> list[Violation]:
    """`lag`: seconds that a kept answer may be behind."""
    return [
        document.violation(seen, event)
        for document in _documents(history)
        for seen, event in document.sights
        if document.too_late(seen, event) > (lag if _is_kept(event) else 0.0)
    ]


def largest_lag(history: Sequence[Event]) -> float:
    """Seconds that kept answers were behind, at most."""
    late = [
        document.too_late(seen, event)
        for document in _documents(history)
        for seen, event in document.sights
        if _is_kept(event)
    ]
    return max((seconds for seconds in late if seconds < inf), default=0.0)


def _documents(history: Sequence[Event]) -> list[Document]:
    writes, sights = defaultdict[str, list[Write]](list), defaultdict[str, list[tuple[Span | Look, Event]]](list)
    for event in history:
        if isinstance(event, Write):
            writes[event.document].append(event)
        elif isinstance(event, Look):
            sights[event.document].append((event, event))
        else:
            for span in event.spans:
                sights[span.document].append((span, event))
            if event.about is not None and not event.partial and event.about not in {s.document for s in event.spans}:
                sights[event.about].append((Look(event.about, None, event.begin, event.end), event))
    return [Document(name, writes[name], sights[name]) for name in sorted(writes.keys() | sights.keys())]


def _has(write: Write, seen: Span | Look) -> bool:
    if isinstance(seen, Look):
        return write.text == seen.text
    return write.text is not None and write.text[seen.start : seen.end] == seen.answer and bool(seen.answer)


def _is_kept(event: Event) -> bool:
    return isinstance(event, Reply) and event.cached


def _removes(event: Event) -> bool:
    return isinstance(event, Write) and event.text is None


def _end(event: Event) -> float:
    return inf if event.end is None else event.end
