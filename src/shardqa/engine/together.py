"""Puts many documents: small ones together, as the rows of a table are, and the rest one by one.

What a shard does not take of a part is put alone, which has the reasons and the retries; so this is never less than
putting each.
"""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any

import orjson
from redis.asyncio.cluster import ClusterNode

from shardqa import keys
from shardqa.description import record_of
from shardqa.engine.connections import Shards
from shardqa.engine.documents import PUT_SECONDS, Documents, words_of
from shardqa.engine.epochs import Epochs
from shardqa.errors import ShardqaError
from shardqa.schema import Document, Ingested

DOCUMENTS_AT_ONCE = 8  # documents of one `put_each` on their way alone
SMALL_DOCUMENT = 8_192  # characters of a document that travels with others
TRIP_DOCUMENTS = 256  # documents of one round trip
TOGETHER_CHARACTERS = 524_288  # of all their fields, or one document's more


class Together:
    def __init__(self, shards: Shards, epochs: Epochs, documents: Documents) -> None:
        self._shards = shards
        self._epochs = epochs
        self._documents = documents

    async def put_each(self, documents: Sequence[Document], replace: bool = True) -> list[Ingested | Exception]:
        """Puts each as `put` does, small ones together; a fault stands in its document's place. Of one id the last
        stays: its documents take turns."""
        numbers: dict[tuple[str, str], list[int]] = {}
        for n, document in enumerate(documents):
            numbers.setdefault((self._documents.corpus_of(document), document.id), []).append(n)
        outcomes: dict[int, Ingested | Exception] = {}
        for turn in zip_longest(*numbers.values()):
            part = [n for n in turn if n is not None]
            outcomes |= dict(zip(part, await self._put_once([documents[n] for n in part], replace), strict=True))
        return [outcomes[n] for n in range(len(documents))]

    async def _put_once(self, documents: Sequence[Document], replace: bool) -> list[Ingested | Exception]:
        """Ids must differ within a corpus."""
        outcomes: list[Ingested | Exception | None] = [*await self.put_together(documents, replace)]
        places = asyncio.Semaphore(DOCUMENTS_AT_ONCE)

        async def alone(document: Document) -> Ingested | Exception:
            async with places:
                try:
                    return await self._documents.put(document, replace)
                except Exception as fault:  # noqa: BLE001 - whatever it is, it must not take along the outcomes of others
                    return fault

        rest = [n for n, outcome in enumerate(outcomes) if not isinstance(outcome, Ingested)]
        for n, outcome in zip(rest, await asyncio.gather(*(alone(documents[n]) for n in rest)), strict=True):
            outcomes[n] = outcome
        return [outcome for outcome in outcomes if outcome is not None]

    async def put_together(
        self, documents: Sequence[Document], replace: bool = True
    ) -> list[Ingested | ShardqaError | None]:
        """Puts those that are small, many in one round trip to each shard. Ids must differ within a corpus.

        None where one has to be put alone; a fault where a shard may have stored it, and did not say so.
        """
        outcomes: list[Ingested | ShardqaError | None] = [None] * len(documents)
        await self._documents.look_at(documents)
        parts = _Parts(self._shards)
        for n, document in enumerate(documents):
            if len(document.text) <= SMALL_DOCUMENT:
                with suppress(ShardqaError):  # put alone it is raised
                    corpus = self._documents.corpus_of(document)
                    parts.add(corpus, n, keys.doc(corpus, document.id), words_of(document, replace))
        whole = [part for part in parts.whole() if len(part.sent) > 1]
        for part, outcomes_of_part in zip(whole, await asyncio.gather(*map(self._put_part, whole)), strict=True):
            for n, one in zip(part.numbers, outcomes_of_part, strict=True):
                outcomes[n] = _ingested(part.corpus, documents[n], one) if isinstance(one, list) else one
        return outcomes

    async def _put_part(self, part: "_Part") -> list[Any]:
        words = ("RG.TRIGGERONKEY", "IngestMany", part.sent[0][0], orjson.dumps(part.sent))
        try:
            reply = record_of(await self._shards.on(part.node, *words, seconds=PUT_SECONDS))
        except ShardqaError as fault:
            return [fault] * len(part.sent)
        if reply["epoch"]:
            self._epochs.announce(part.corpus, str(reply["tag"]), int(reply["epoch"]))
        return list(reply["documents"])


@dataclass(slots=True)
class _Part:
    """Documents that one shard is sent together."""

    corpus: str
    node: ClusterNode
    numbers: list[int] = field(default_factory=list)
    sent: list[tuple[str, list[str]]] = field(default_factory=list)  # keys, and words of `Ingest`
    characters: int = 0


class _Parts:
    """Documents by corpus and shard, in parts of at most TRIP_DOCUMENTS."""

    def __init__(self, shards: Shards) -> None:
        self._shards = shards
        self._nodes: dict[str, ClusterNode] = {}  # by bucket
        self._open: dict[tuple[str, str], _Part] = {}
        self._full: list[_Part] = []

    def add(self, corpus: str, number: int, key: str, words: list[str]) -> None:
        """Raises ClusterUnavailable."""
        bucket = keys.parse_doc(key).tag
        node = self._nodes.get(bucket)
        if node is None:
            node = self._nodes[bucket] = self._shards.owner(key)
        part = self._open.setdefault((corpus, str(node.name)), _Part(corpus, node))
        part.numbers.append(number)
        part.sent.append((key, words))
        part.characters += sum(map(len, words))
        if len(part.sent) == TRIP_DOCUMENTS or part.characters > TOGETHER_CHARACTERS:
            self._full.append(self._open.pop((corpus, str(node.name))))

    def whole(self) -> list[_Part]:
        return [*self._full, *self._open.values()]


def _ingested(corpus: str, document: Document, outcome: list[Any]) -> Ingested:
    passages, characters, is_new = outcome
    return Ingested(corpus=corpus, document=document.id, passages=passages, characters=characters, changed=is_new)
