"""Suggests what a corpus can be asked about: its titles and headings, for those who don't know."""

import asyncio

from shardqa import keys, places
from shardqa.engine.catalogue import Catalogue
from shardqa.engine.connections import Shards
from shardqa.errors import ShardqaError
from shardqa.filters import DocumentFilter
from shardqa.schema import DocumentInfo, Suggestions

TITLED = 100  # documents whose titles are shown
HEADED = 20  # documents whose headings are looked at
MOST_PLACES = 65_536  # bytes of a document's places that are fetched for its headings
SMALL_TEXT = 262_144  # bytes of a document whose places are fetched unmeasured: they grow with the text
PER_DOCUMENT = 5  # headings


class Suggesting:
    def __init__(self, shards: Shards, catalogue: Catalogue) -> None:
        self._shards = shards
        self._catalogue = catalogue

    async def of(self, corpus: str | None = None, filter: DocumentFilter | None = None) -> Suggestions:
        """Titles and headings of the first documents that `filter` lets through.

        Raises UnknownCorpus, BadFilter, ClusterUnavailable.
        """
        page = await self._catalogue.documents(corpus, None, TITLED, filter)
        headings = await asyncio.gather(*(self._headings(page.corpus, one) for one in page.documents[:HEADED]))
        titles = [*(document.title for document in page.documents), *(words for own in headings for words in own)]
        return Suggestions(corpus=page.corpus, suggestions=list(dict.fromkeys(words for words in titles if words)))

    async def _headings(self, corpus: str, document: DocumentInfo) -> list[str]:
        """The first innermost headings of a document; none where they can't be had: this is help, not content."""
        key = keys.doc(corpus, document.id)
        try:
            may_be_large = document.bytes > SMALL_TEXT
            if may_be_large and int(await self._shards.by_key(key, "HSTRLEN", "places")) > MOST_PLACES:
                return []
            value = await self._shards.by_key(key, "HGET", "places")
            marks = places.check(value or b"")
        except ShardqaError:
            return []
        innermost = (place["headings"][-1] for _, place in marks if place.get("headings"))
        return list(dict.fromkeys(str(words) for words in innermost))[:PER_DOCUMENT]
