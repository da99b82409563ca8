"""A new corpus in other languages than English is read by the pair of many languages, where the cluster has one."""

import asyncio
from collections.abc import Iterable
from contextlib import suppress

from cachetools import LRUCache

from shardqa import languages
from shardqa.engine.catalogue import Catalogue
from shardqa.errors import ShardqaError

ENGLISH = 0.9  # share of a corpus' first text that has to be English
REMEMBERED = 4_096  # corpora that are not looked at again


class PairChoice:
    def __init__(self, catalogue: Catalogue) -> None:
        self._catalogue = catalogue
        self._seen: LRUCache[str, bool] = LRUCache(REMEMBERED)
        self._choosing = asyncio.Lock()  # whoever puts a document beside the first waits for the same choice

    async def choose(self, corpus: str, texts: Iterable[str]) -> None:
        """Looks at the first documents of a corpus; who may not choose, or has no pair, gets the English one."""
        async with self._choosing:
            if corpus not in self._seen and languages.share_of_english("\n".join(texts)) < ENGLISH:
                with suppress(ShardqaError):
                    known = await self._catalogue.corpora()
                    if not known.partial and all(one.name != corpus for one in known.corpora):
                        await self._catalogue.switch(corpus, "languages", True)
            self._seen[corpus] = True
