"""Corpora as wholes: lists them and their documents page by page, switches what they have, and drops them."""

import asyncio
import base64
import binascii
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from time import monotonic
from typing import Any, Literal, TypeAlias

from shardqa import checks, filters, keys, metadata
from shardqa.config import Settings
from shardqa.description import CorporaOfShard, CorpusPart, record_of
from shardqa.engine.connections import Argument, Shards, values_and_failures
from shardqa.engine.corpus_words import CorpusWords
from shardqa.engine.epochs import KNOWN_SECONDS, Epochs
from shardqa.engine.files import Files
from shardqa.errors import (
    AnswerTimeout,
    BadCursor,
    BadDocumentId,
    ClusterUnavailable,
    SeveralCorpora,
    UnknownCorpus,
    WritesRefused,
)
from shardqa.filters import DocumentFilter
from shardqa.question import EVERY, CorporaChoice, corpora_of
from shardqa.schema import Corpora, CorpusInfo, DocumentInfo, DocumentList, Dropping, Facet, Facets, OneCorpus
from shardqa.transient import is_transient_fault

MAX_PAGE = 1_000  # documents
MOST_FACETS = 200  # folders or tags, those with most documents
LOOK_SECONDS = 0.1  # seconds until shards are asked again about what is between them, or how far they are
SIZES = ("documents", "passages", "characters", "bytes")
Switch: TypeAlias = Literal["bridges", "dense", "languages"]
TRIGGERS: dict[Switch, str] = {"bridges": "Bridging", "dense": "Dense", "languages": "Languages"}
"""What a corpus can have or be without: documents whose titles the first passages name, vectors of its passages where
the cluster has an encoder, and the pair of many languages."""


@dataclass(frozen=True, slots=True)
class _Listed:
    """The names of all corpora, while no corpus has changed since `moment`."""

    names: list[str]
    moment: int
    until: float  # monotonic seconds


class Catalogue:
    def __init__(self, settings: Settings, shards: Shards, epochs: Epochs, words: CorpusWords, files: Files) -> None:
        self._settings = settings
        self._shards = shards
        self._epochs = epochs
        self._words = words
        self._files = files
        self._listed: _Listed | None = None

    async def corpora(self, filter: DocumentFilter | None = None) -> Corpora:
        """Lists the corpora with a document that `filter` lets through, sized by such documents. Raises BadFilter."""
        shards, failures = await self._corpora_of_shards(filter)
        corpora = [info if filter is None else _without_epoch(info) for info in sums(shards)]
        return Corpora(corpora=corpora, partial=bool(failures), failed=failures)

    def named(self, corpus: CorporaChoice) -> CorporaChoice:
        """The corpora that a request names, else the settings; None where both leave it open."""
        return self._settings.corpus if corpus is None and "corpus" in self._settings.model_fields_set else corpus

    async def one_asked(self, corpus: str | None = None) -> str:
        """The corpus that a request is for which takes one alone. Raises as `asked`, and SeveralCorpora."""
        corpora = await self.asked(corpus)
        if len(corpora) > 1:
            raise SeveralCorpora(f"{', '.join(corpora)} are several corpora, and this is for one")
        return corpora[0]

    async def asked(
        self,
        corpus: CorporaChoice = None,
        is_for: Callable[[str], bool] = lambda name: True,
        view: DocumentFilter | None = None,
    ) -> tuple[str, ...]:
        """The corpora that a question is for: those named, else the asker's own, else the example.

        `is_for` and `view` say what he may ask. Raises AnswerTimeout, ClusterUnavailable, BadCorpusName, BadLimit,
        SeveralCorpora where he names none and has more than one, UnknownCorpus where he asks all and has none.
        """
        own = self.known_asked(corpus, is_for, view)
        if own is not None:
            return own
        names = await self._names(view if self._is_every(corpus) else None)
        return self._every(names, is_for) if self._is_every(corpus) else self._own(names, is_for)

    async def _names(self, view: DocumentFilter | None) -> list[str]:
        """The names of corpora with a document that the view shows. Raises AnswerTimeout, ClusterUnavailable."""
        moment = self._epochs.moment()
        try:
            async with asyncio.timeout(self._settings.timeout):
                corpora = await self.corpora(view)
        except TimeoutError:
            raise AnswerTimeout(
                f"no list of corpora came within {self._settings.timeout:g} s; ask again, or allow more by "
                "SHARDQA_TIMEOUT"
            ) from None
        names = [one.name for one in corpora.corpora]
        if moment is not None and not corpora.partial and view is None:
            self._listed = _Listed(names, moment, monotonic() + KNOWN_SECONDS)
        return names

    def known_asked(
        self, corpus: CorporaChoice, is_for: Callable[[str], bool], view: DocumentFilter | None = None
    ) -> tuple[str, ...] | None:
        """Returns what `asked` does where that needs no shard; else None. Raises as it."""
        name, listing = self.named(corpus), self._listed
        if name is not None and not self._is_every(name):
            return corpora_of(name)
        if listing is None or listing.moment != self._epochs.moment() or monotonic() >= listing.until:
            return None
        if name is None:
            return self._own(listing.names, is_for)
        return self._every(listing.names, is_for) if view is None else None

    def _is_every(self, corpus: CorporaChoice) -> bool:
        name = self.named(corpus)
        return name is not None and corpora_of(name) == (EVERY,)

    def _every(self, names: Sequence[str], is_for: Callable[[str], bool]) -> tuple[str, ...]:
        own = [name for name in names if is_for(name)]
        if not own:
            raise UnknownCorpus("there is no corpus to ask")
        return corpora_of(own)

    def _own(self, names: Sequence[str], is_for: Callable[[str], bool]) -> tuple[str, ...]:
        own = [name for name in names if name != self._settings.corpus and is_for(name)]
        if len(own) > 1:
            raise SeveralCorpora(f"there are the corpora {', '.join(own)}, and the question names none of them")
        return (own[0] if own else self._settings.corpus,)

    async def corpus(self, name: str, filter: DocumentFilter | None = None) -> OneCorpus:
        """A corpus, sized by the documents that `filter` lets through. Raises UnknownCorpus, ClusterUnavailable."""
        keys.check_corpus(name)
        shards, failures = await self._corpora_of_shards(filter)
        info = next((info for info in sums(shards) if info.name == name), None)
        dropping: list[dict[str, Any]] = []
        if filter is None:
            dropping = [asdict(shard.dropping[name]) for shard in shards if name in shard.dropping]
        elif info is not None:
            info = _without_epoch(info)  # what is being removed may be what the filter leaves out, too
        if info is None and not dropping and not failures:
            raise UnknownCorpus(f"there is no corpus {name!r}")
        return OneCorpus(
            corpus=info,
            dropping=_dropping(name, dropping, False) if dropping else None,
            partial=bool(failures),
            failed=failures,
        )

    async def facets(self, name: str, filter: DocumentFilter | None = None) -> Facets:
        """Counts the documents that `filter` lets through by folder and tag. Raises UnknownCorpus, BadFilter."""
        canonical = filters.canonical(filter)
        words = [keys.check_corpus(name), *([canonical] if canonical else [])]
        values, failed = values_and_failures(await self._shards.everywhere("RG.TRIGGER", "Facets", *words), record_of)
        documents = sum(int(reply["documents"]) for _, reply in values)
        if not documents and not failed:
            raise UnknownCorpus(f"there is no corpus {name!r}")
        folders, tags = (_facets([reply[kind] for _, reply in values]) for kind in ("folders", "tags"))
        return Facets(corpus=name, documents=documents, folders=folders, tags=tags, partial=bool(failed), failed=failed)

    async def _corpora_of_shards(self, filter: DocumentFilter | None) -> tuple[list[CorporaOfShard], list[str]]:
        """The corpora of each shard, and the nodes that did not answer, or do not know all of theirs yet."""
        canonical = filters.canonical(filter)
        replies = await self._shards.everywhere("RG.TRIGGER", "Corpora", *([canonical] if canonical else []))
        values, failures = values_and_failures(replies, CorporaOfShard.parse)
        indexing = (node for node, corpora in values if corpora.shard.indexing)
        return [corpora for _, corpora in values], sorted({*failures, *indexing})

    async def documents(
        self,
        corpus: str | None = None,
        cursor: str | None = None,
        limit: int = 100,
        filter: DocumentFilter | None = None,
    ) -> DocumentList:
        """The documents of a corpus that follow `cursor`, of those that `filter` lets through.

        A document that is there all along is listed just once.

        Raises UnknownCorpus, BadCursor, BadFilter, BadLimit, ClusterUnavailable.
        """
        corpus = keys.check_corpus(self._settings.corpus if corpus is None else corpus)
        checks.between("limit", limit, 1, MAX_PAGE)
        after = _parse_cursor(cursor)
        try:
            async with asyncio.timeout(self._settings.timeout):
                page = await self._settled_page(corpus, after, limit, filters.canonical(filter))
        except TimeoutError:
            raise ClusterUnavailable(
                f"documents of corpus {corpus!r} were between shards for {self._settings.timeout:g} s; try again"
            ) from None
        if cursor is None and not page.documents and not page.partial and page.cursor is None:
            raise UnknownCorpus(f"there is no corpus {corpus!r}")
        return page

    async def every_document(self, corpus: str | None = None) -> AsyncIterator[DocumentInfo]:
        """Yields every document of a corpus. Raises as `documents`, and ClusterUnavailable where a shard is missing."""
        cursor = None
        while True:
            documents = await self.documents(corpus, cursor, MAX_PAGE)
            if documents.failed:
                raise ClusterUnavailable(f"{', '.join(documents.failed)} did not answer; see 'shardqa status'")
            for document in documents.documents:
                yield document
            cursor = documents.cursor
            if cursor is None:
                return

    async def _settled_page(self, corpus: str, after: str, limit: int, filter_: str) -> DocumentList:
        while True:
            page = await self._page(corpus, after, limit, filter_)
            if page is not None:
                return page
            self._shards.refresh()  # the bucket may be with a master that is not known yet
            await asyncio.sleep(LOOK_SECONDS)

    async def _page(self, corpus: str, after: str, limit: int, filter_: str) -> DocumentList | None:
        """The documents of a page; None where the next bucket is between shards."""
        command: list[Argument] = ["RG.TRIGGER", "Documents", corpus, after, limit + 1]
        command += [filter_] if filter_ else []
        values, failures = values_and_failures(await self._shards.everywhere(*command), record_of)
        entries = {(entry["bucket"], entry["id"]): entry for _, reply in values for entry in reply["documents"]}
        buckets = {bucket for _, reply in values for bucket in reply["buckets"]}
        first = after.partition(":")[0]
        gap = next((name for name in keys.ALL_BUCKETS if name >= first and name not in buckets), None)
        places = sorted(entries)
        if gap is not None and not failures:
            places = [place for place in places if place[0] < gap]
            if not places:
                return None
        on_page = places[:limit]
        is_more = len(places) > limit or (gap is not None and not failures)
        return DocumentList(
            corpus=corpus,
            documents=[_info(entries[place]) for place in on_page],
            cursor=_cursor(*on_page[-1]) if on_page and is_more else None,
            partial=bool(failures),
            failed=failures,
        )

    async def drop(self, corpus: str) -> Dropping:
        """Makes a corpus unsearchable, and returns; the shards go on removing it. Once more does no harm.

        Raises UnknownCorpus, ClusterUnavailable: then those that answered have begun, and the rest is done by another
        try.
        """
        keys.check_corpus(corpus)
        buckets, latest, silent = set[str](), dict[str, dict[str, Any]](), list[str]()
        try:
            async with asyncio.timeout(self._settings.timeout):
                while len(buckets) < keys.BUCKETS:  # a worker that is being replaced is waited for
                    await asyncio.sleep(LOOK_SECONDS if latest or silent else 0)
                    if latest:
                        self._shards.refresh()
                    buckets |= await self._drop_once(corpus, latest, silent)
        except TimeoutError:
            why = f"{', '.join(silent)} did not answer" if silent else "slots were between shards"
            raise ClusterUnavailable(
                f"{why} for {self._settings.timeout:g} s; what the other shards have of corpus {corpus!r} is being "
                "dropped: drop it again for the rest, see 'shardqa status'"
            ) from None
        left = [reply for reply in latest.values() if reply["is_left"]]
        if not left and not any(reply["documents"] for reply in latest.values()):
            raise UnknownCorpus(f"there is no corpus {corpus!r}")
        await self._words.forget(corpus)
        await self._files.forget(corpus)
        return _dropping(corpus, list(latest.values()), not left)

    async def _drop_once(self, corpus: str, latest: dict[str, dict[str, Any]], silent: list[str]) -> set[str]:
        """The buckets that the shards vouch for; `latest` has each shard's reply by its tag, `silent` who gave none."""
        replies = await self._shards.everywhere("RG.TRIGGER", "Drop", corpus)
        for fault in (one.fault for one in replies if one.fault and not is_transient_fault(one.fault)):
            raise fault
        for refused in (one.fault for one in replies if isinstance(one.fault, WritesRefused)):
            begun = any(one.fault is None for one in replies)
            told = "the other shards remove what they have" if begun else "nothing is removed"
            raise WritesRefused(f"{refused}; {told} of corpus {corpus!r}: drop it again once that has ended")
        values, silent[:] = values_and_failures(replies, record_of, others_are_known=True)
        for _, reply in values:
            self._epochs.announce(corpus, str(reply["tag"]), int(reply["epoch"]))
            if reply["is_left"] or not latest.get(reply["tag"], reply)["documents"]:
                latest[reply["tag"]] = reply  # else its part is gone already, and the reply before has how much it was
            else:
                latest[reply["tag"]]["is_left"] = False
        return {bucket for _, reply in values for bucket in reply["buckets"]}

    async def switch(self, corpus: str, switch: Switch, is_on: bool) -> None:
        """Raises BadCorpusName, ClusterUnavailable: then those shards that answered have it so, and another try does
        the rest.
        """
        keys.check_corpus(corpus)
        replies = await self._shards.everywhere("RG.TRIGGER", TRIGGERS[switch], corpus, "on" if is_on else "off")
        _, failures = values_and_failures(replies, record_of)
        if failures:
            raise ClusterUnavailable(f"{', '.join(failures)} did not answer; try again once 'shardqa status' shows all")

    async def dropping(self, corpus: str) -> AsyncIterator[Dropping]:
        """Yields how far the removal of a dropped corpus is, until it is done."""
        latest = None
        while True:
            try:
                now = (await self.corpus(corpus)).dropping
            except UnknownCorpus:
                now = None
            if now is None:
                break
            latest = now
            yield now
            await asyncio.sleep(LOOK_SECONDS)
        count = latest.documents if latest else 0
        yield Dropping(corpus=corpus, documents=count, removed=count, done=True)


def sums(shards: Sequence[CorporaOfShard]) -> list[CorpusInfo]:
    """Returns each corpus with its sizes over all shards, by name."""
    parts = defaultdict[str, dict[str, CorpusPart]](dict)  # by the shard's tag
    for shard in shards:
        for name, part in shard.corpora.items():
            parts[name][shard.shard.tag] = part
    return [info for name, of in sorted(parts.items()) if (info := _sum(name, of)).documents]


def _sum(name: str, parts: Mapping[str, CorpusPart]) -> CorpusInfo:
    every, epochs = parts.values(), {tag: part.epoch for tag, part in parts.items()}
    sizes = {field: sum(getattr(part, field) for part in every) for field in SIZES}
    encoded = [part.encoded for part in every if part.encoded is not None]
    beside = {"encoded": sum(encoded) if encoded else None, "languages": any(part.languages for part in every)}
    return CorpusInfo(name=name, epoch=keys.corpus_epoch(epochs), **sizes, **beside)


def _facets(shards: Sequence[dict[str, int]]) -> list[Facet]:
    total = sum(map(Counter, shards), Counter[str]())
    return [Facet(name=name, documents=count) for name, count in total.most_common(MOST_FACETS)]


def _without_epoch(corpus: CorpusInfo) -> CorpusInfo:
    """Leaves the epoch out: it changes with documents that a filter hides, too."""
    return corpus.model_copy(update={"epoch": ""})


def _dropping(corpus: str, parts: list[dict[str, Any]], is_done: bool) -> Dropping:
    documents, removals = (sum(int(part[name]) for part in parts) for name in ("documents", "removed"))
    return Dropping(corpus=corpus, documents=documents, removed=removals, done=is_done)


def _info(entry: dict[str, Any]) -> DocumentInfo:
    fields = {name: value for name, value in entry.items() if name != "bucket"}
    return DocumentInfo(**{**fields, "metadata": metadata.unpack(entry["metadata"])})


def _cursor(bucket: str, document: str) -> str:
    return base64.urlsafe_b64encode(f"{bucket}:{document}".encode()).decode().rstrip("=")


def _parse_cursor(cursor: str | None) -> str:
    """The document before a page as bucket:id, or nothing."""
    if cursor is None:
        return ""
    try:
        after = base64.b64decode(cursor + "=" * (-len(cursor) % 4), b"-_", validate=True).decode()
        bucket, _, document = after.partition(":")
        if keys.bucket(keys.check_document_id(document)) == bucket:
            return after
    except (binascii.Error, ValueError, BadDocumentId):
        pass
    raise BadCursor(f"{cursor[:40]!r} is no cursor of a list; send that of the page before, or none")
