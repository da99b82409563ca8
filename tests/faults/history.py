"""Clients' writes, replies to their questions, and looks at documents. Times are of one monotonic clock, in seconds.

A write that ended with anything but an acknowledgement has no end: it may take effect at any time after its begin, or
never. Where nodes may be lost for good or a replica may take over, a client acknowledges only what a replica has, too
(workload.py): Redis replicates asynchronously and promises no more.
"""

from dataclasses import dataclass
from typing import TypeAlias

SHOWN = 60  # characters of a text in a printed line


@dataclass(frozen=True, slots=True)
class Write:
    document: str
    version: int  # of the document; each write has its own
    text: str | None  # None: it was deleted
    begin: float
    end: float | None  # None: not acknowledged

    def __str__(self) -> str:
        what = "delete" if self.text is None else "put"
        text = "" if self.text is None else f": {self.text[:SHOWN]!r}"
        end = "?, not acknowledged" if self.end is None else f"{self.end:.3f}"
        return f"{self.begin:.3f} .. {end}  {what} {self.document!r}, version {self.version}{text}"


@dataclass(frozen=True, slots=True)
class Span:
    document: str
    start: int
    end: int
    answer: str

    def __str__(self) -> str:
        return f"{self.answer!r} at {self.start}..{self.end} of {self.document!r}"


@dataclass(frozen=True, slots=True)
class Reply:
    question: str
    about: str | None  # the document that answers it best, where one does
    spans: tuple[Span, ...]  # the answer and the other candidates
    begin: float
    end: float
    partial: bool = False
    by: str = "engine"
    cached: bool = False  # the asker's process has only to have heard of a change

    def __str__(self) -> str:
        spans = "; ".join(map(str, self.spans)) or "nothing"
        cached = " and got what was kept" if self.cached else ""
        return f"{self.begin:.3f} .. {self.end:.3f}  {self.by} asked {self.question!r}{cached}: {spans}"


@dataclass(frozen=True, slots=True)
class Look:
    """A document was read, or was not there."""

    document: str
    text: str | None
    begin: float
    end: float

    def __str__(self) -> str:
        said = "nothing" if self.text is None else repr(self.text[:SHOWN])
        return f"{self.begin:.3f} .. {self.end:.3f}  looked at {self.document!r}: {said}"


Event: TypeAlias = Write | Reply | Look
