"""A document as it will lie in Redis: its passages, with what each keeps, in frames that are written in one tick.

Made in any thread, beside the loop.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import orjson

from shardqa import keys, places
from shardqa.errors import BadDocument
from shardqa.gears_functions.document_hash import Fields, Incoming
from shardqa.gears_functions.index.catalogue import DocumentInfo
from shardqa.gears_functions.splitting import Passage
from shardqa.worker.runtime import Argument

FRAME = 64  # passages written in one tick and indexed before the loop serves others: about 10 ms
FRAME_BYTES = 32_768  # of their texts, titles and paths, where these are long: a word of Hangul makes many terms
GROWTH = 10  # times its own bytes that a document may take in Redis, whatever its text, id and headings
LEAST_BYTES = 100_000  # bytes that a smaller document counts as
OF_PASSAGE = 650  # bytes that Redis takes for a passage beside names, text, word pieces and places


@dataclass(frozen=True, slots=True)
class Parts:
    """A document as it will lie in Redis."""

    title: str
    digest: str
    passages: list[Passage]
    places: list[str]  # of each passage, as JSON
    paths: list[str]
    info: DocumentInfo

    @classmethod
    def of(cls, key: str, fields: Fields, digest: str, passages: list[Passage]) -> Parts:
        """Makes the parts of a document; raises BadDocument where they would take too much of Redis. Any thread."""
        if not passages:
            raise BadDocument(f"document {key!r} has no words, only blanks and control characters; give it a text")
        within = [places.within(fields.marks, p.start, p.end) for p in passages]
        marks = [orjson.dumps(part).decode() if part else "" for part in within]
        paths = [places.below(fields.title, p.path) for p in passages]
        size = sum(len(word.encode()) for word in fields.pairs())
        total = size + sum(len(part.encode()) for parts in (marks, paths) for part in parts)
        total += sum(len(p.text.encode()) + p.ids.nbytes + 2 * len(key) + OF_PASSAGE for p in passages)
        if total > GROWTH * max(size, LEAST_BYTES):
            raise BadDocument(
                f"document {key!r} of {size:,} bytes would take {total:,} in Redis, more than {GROWTH} times as many; "
                "shorten its id and its headings, or split a text of marks and single letters"
            )
        info = DocumentInfo(len(fields.text.encode()), fields.metadata, fields.source)
        return cls(fields.title, digest, passages, marks, paths, info)

    def frames(self) -> list[range]:
        """Returns the numbers of the passages that are written together, for each tick."""
        frames, first, size = list[range](), 0, 0
        for n, p in enumerate(self.passages):
            weight = sum(len(part.encode()) for part in (p.text, self.title, self.paths[n]))
            if n - first == FRAME or (n > first and size + weight > FRAME_BYTES):
                frames.append(range(first, n))
                first, size = n, 0
            size += weight
        return [*frames, range(first, len(self.passages))]

    def commands_of_new(self, one: Incoming) -> list[tuple[Argument, ...]]:
        """Returns all commands of a document of one frame that was not there; the digest is last (DocumentWriter)."""
        count = len(self.passages)
        head: tuple[Argument, ...] = ("HSET", one.key, *one.fields.pairs(), "passages", count)
        return [head, *self.commands_of(one.doc, range(count), is_new=True), ("HSET", one.key, "digest", one.digest)]

    def commands_of(self, doc: keys.DocKey, frame: range, is_new: bool = False) -> list[tuple[Argument, ...]]:
        """Returns the commands that write passages and their tokens; the first one has what is the document's."""
        commands: list[tuple[Argument, ...]] = []
        for n in frame:
            p, name = self.passages[n], (doc.corpus, doc.document, n)
            fields: dict[str, Argument] = {"places": self.places[n], "path": self.paths[n]}
            if not n:
                fields |= {"title": self.title, "source": self.info.source}
                fields |= {"metadata": self.info.metadata, "bytes": self.info.size}
            values = {"text": p.text, "start": p.start, "end": p.end, **{name: it for name, it in fields.items() if it}}
            if not is_new:
                commands.append(("HDEL", keys.passage(*name), "title", "source", *fields))  # of an earlier text
            commands.append(("HSET", keys.passage(*name), *(word for pair in values.items() for word in pair)))
            commands.append(("AI.TENSORSET", keys.tokens(*name), "INT32", len(p.ids), "BLOB", p.ids.tobytes()))
        return commands


def tick_size(documents: Sequence[Parts]) -> int:
    """Returns how many of the first documents go into one tick: those of FRAME passages together, at least one."""
    passages = itertools.accumulate(len(parts.passages) for parts in documents)
    return max(1, sum(count <= FRAME for count in passages))
