"""The documents of a corpus on one shard by bucket, and what is known of each: for lists, sizes and filters.

In the order (bucket, id), which does not depend on who holds a bucket: so a list can go on from where it stood while
slots move. Owned by an Index; one thread.
"""

import heapq
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from shardqa import keys
from shardqa.gears_functions.index.attributes import Attributes


@dataclass(frozen=True, slots=True)
class DocumentInfo:
    """Facts of a document that its first passage holds."""

    size: int  # bytes of its text
    metadata: str  # JSON object, or nothing
    source: str = ""


class IndexCatalogue:
    def __init__(self) -> None:
        self._buckets: dict[str, dict[str, int]] = {}  # bucket -> id -> bytes of the text
        self._attributes = Attributes()
        self.bytes = 0  # of all documents' texts

    def __len__(self) -> int:
        return sum(map(len, self._buckets.values()))

    def add(self, document: str) -> None:
        self._buckets.setdefault(keys.bucket(document), {})[document] = 0

    def describe(self, document: str, title: str, info: DocumentInfo) -> None:
        """Keeps what is known of a document that was added."""
        sizes = self._buckets[keys.bucket(document)]
        self.bytes += info.size - sizes[document]
        sizes[document] = info.size
        self._attributes.remove(document)
        self._attributes.add(document, title, info.source, info.metadata)

    def remove(self, document: str) -> None:
        bucket = keys.bucket(document)
        self.bytes -= self._buckets[bucket].pop(document)
        self._attributes.remove(document)
        if not self._buckets[bucket]:
            del self._buckets[bucket]

    def chosen(self, filter_: str) -> frozenset[str]:
        """Returns the ids of the documents that a canonical filter lets through. Raises BadFilter."""
        return self._attributes.chosen(filter_, self._every)

    def counts(self, field: str, view: str = "") -> dict[str, int]:
        """Returns how many documents that `view` shows have each text of a field (see filters). Raises BadFilter."""
        return self._attributes.counts(field, self.chosen(view) if view else None)

    def _every(self) -> list[str]:
        return [one for ids in self._buckets.values() for one in ids]

    def bytes_of(self, documents: Iterable[str]) -> int:
        """Returns the bytes of these documents' texts together."""
        return sum(self._buckets[keys.bucket(one)][one] for one in documents)

    def buckets(self) -> set[str]:
        return set(self._buckets)

    def of_bucket(self, bucket: str) -> list[str]:
        """Returns the ids of a bucket's documents, in no order."""
        return list(self._buckets.get(bucket, ()))

    def after(self, bucket: str, document: str, limit: int, view: str = "") -> list[tuple[str, str]]:
        """Returns the `limit` (bucket, id) that come next, of those that `view` shows; everything comes after ("", "").

        Raises BadFilter.
        """
        places, ids_of_view = list[tuple[str, str]](), self.chosen(view) if view else None
        for name, every in self._following(bucket, document):
            ids = every if ids_of_view is None else [one for one in every if one in ids_of_view]
            places += [(name, one) for one in heapq.nsmallest(limit - len(places), ids)]
            if len(places) == limit:
                break
        return places

    def _following(self, bucket: str, document: str) -> Iterator[tuple[str, list[str]]]:
        for name in sorted(name for name in self._buckets if name >= bucket):
            yield name, [one for one in self._buckets[name] if name > bucket or one > document]
