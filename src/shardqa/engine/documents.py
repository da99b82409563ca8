"""Puts, gets and deletes documents: each goes to the shard that holds its key."""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from typing import Any, TypeAlias

from shardqa import checks, keys, metadata, places
from shardqa.config import Settings
from shardqa.description import record_of
from shardqa.engine.connections import Shards
from shardqa.engine.epochs import Epochs
from shardqa.engine.files import as_bytes, name_of
from shardqa.errors import BadDocument, BadDocumentId
from shardqa.retry import retry
from shardqa.schema import Document, Ingested

Choose: TypeAlias = Callable[[str, Iterable[str]], Awaitable[None]]  # of a corpus, given texts of it
PUT_SECONDS = 600.0  # the last resort: a shard says itself that a document gets no further, and one that hangs is found


class Documents:
    def __init__(self, settings: Settings, shards: Shards, epochs: Epochs) -> None:
        self._settings = settings
        self._shards = shards
        self._epochs = epochs
        self.choose: Choose | None = None  # the pair of models that reads a new corpus

    async def put(self, document: Document, replace: bool = True) -> Ingested:
        """Stores a document and returns when it is searchable.

        Without `replace`, one of the same id that came from another origin and says something else stays: IdTaken.

        Raises BadDocument, DocumentTooLarge, BadDocumentId, BadCorpusName, ClusterUnavailable.
        """
        corpus = self.corpus_of(document)
        await self.look_at([document])
        key = keys.doc(corpus, document.id)
        words = ("RG.TRIGGERONKEY", "Ingest", key, *words_of(document, replace))
        reply = record_of(await self._shards.on(self._shards.owner(key), *words, seconds=PUT_SECONDS))
        self._epochs.announce(corpus, str(reply["tag"]), int(reply["epoch"]))
        return Ingested(
            corpus=corpus,
            document=document.id,
            passages=reply["passages"],
            characters=reply["characters"],
            changed=reply["changed"],
        )

    async def look_at(self, documents: Sequence[Document]) -> None:
        """Has the pair chosen that reads their corpora, where these are new."""
        if self.choose is not None:
            for corpus in {self.corpus_of(one) for one in documents}:
                await self.choose(corpus, (one.text for one in documents if self.corpus_of(one) == corpus))

    def corpus_of(self, document: Document) -> str:
        return self._settings.corpus if document.corpus is None else document.corpus

    async def get(self, corpus: str, document: str) -> Document | None:
        reply = await self._shards.by_key(keys.doc(corpus, document), "HGETALL")
        fields = {_text(name): _text(value) for name, value in dict(reply).items()} if reply else {}
        if "text" not in fields:
            return None
        return Document(
            id=document,
            corpus=corpus,
            text=fields["text"],
            title=fields.get("title", ""),
            source=fields.get("source", ""),
            metadata=metadata.unpack(fields.get("metadata")),
            places=_marks(fields.get("places", "")),
            origin=fields.get("origin", ""),
        )

    async def delete(self, corpus: str, document: str) -> bool:
        """Removes a document and all that belongs to it; False when there was none.

        Waits for a worker that is being replaced: the document may be what it ended with.
        """
        key = keys.doc(corpus, document)

        async def once() -> Any:
            origin = as_bytes(await self._shards.by_key(key, "HGET", "origin") or b"").decode(errors="replace")
            if (name := name_of(document, origin)) != document:
                with suppress(BadDocumentId):  # a file of such a name is none
                    await self._shards.by_key(keys.file(corpus, name), "UNLINK")
            return await self._shards.on(self._shards.owner(key), "RG.TRIGGERONKEY", "Delete", key)

        reply = record_of(await retry(once, self._settings.timeout))
        self._epochs.announce(corpus, str(reply["tag"]), int(reply["epoch"]))
        return bool(reply["deleted"])


def words_of(document: Document, replace: bool) -> list[str]:
    """The words of `Ingest` after the key. Raises BadDocument, DocumentTooLarge."""
    fields = {
        "text": document.text,
        "title": document.title,
        "source": document.source,
        "metadata": metadata.pack(document.id, document.metadata),
        "places": places.encode(document.places),
        "origin": document.origin,
        "replace": "" if replace else "no",
    }
    checks.document(f"document {document.id!r}", **fields)
    return [part for pair in fields.items() for part in pair]


def _marks(places_json: str) -> list[places.Mark]:
    try:
        return places.decode(places_json)
    except (BadDocument, ValueError):
        return []  # another writer's field; the document is no worse for it


def _text(value: Any) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
