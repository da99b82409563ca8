"""A corpus as a whole: lists its documents page by page, and drops it."""

import asyncio
import base64
import binascii
import secrets
from collections.abc import AsyncIterator
from dataclasses import asdict
from typing import Any

from shardqa import filters, keys, metadata
from shardqa.description import record_of
from shardqa.engine.connected import values_and_failures
from shardqa.engine.connections import Argument
from shardqa.engine.overview import Overview, list_corpora, without_epoch
from shardqa.errors import BadCursor, BadDocumentId, BadLimit, ClusterUnavailable, UnknownCorpus
from shardqa.filters import DocumentFilter
from shardqa.schema import DocumentInfo, DocumentList, Dropping, OneCorpus

MAX_PAGE = 1_000  # documents
SECRET_SECONDS = 7 * 86_400  # that a corpus' cursors hold at most
PAUSE = 0.1  # seconds until shards are asked again about what is between them, or how far they are


class Catalogue(Overview):
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
        corpus = keys.check_corpus(self.settings.corpus if corpus is None else corpus)
        if not 1 <= limit <= MAX_PAGE:
            raise BadLimit(f"limit={limit} is outside 1 to {MAX_PAGE:,}; choose a number in between")
        after = _parse_cursor(cursor)
        try:
            async with asyncio.timeout(self.settings.timeout):
                page = await self._settled_page(corpus, after, limit, filters.canonical(filter))
        except TimeoutError:
            raise ClusterUnavailable(
                f"documents of corpus {corpus!r} were between shards for {self.settings.timeout:g} s; try again"
            ) from None
        if cursor is None and not page.documents and not page.partial and page.cursor is None:
            raise UnknownCorpus(f"there is no corpus {corpus!r}")
        return page

    async def cursor_secret(self, corpus: str) -> bytes:
        """What cursors are sealed with for others: the same for all who may ask the corpus, made when it is missing."""
        key = keys.cursors(keys.check_corpus(corpus))
        found = await self.masters.by_key(key, "GET")
        if found is None:
            made = secrets.token_hex(32)
            found = await self.masters.by_key(key, "SET", made, "NX", "GET", "EX", SECRET_SECONDS) or made
        return found if isinstance(found, bytes) else str(found).encode()

    async def every_document(self, corpus: str | None = None, page: int = MAX_PAGE) -> AsyncIterator[DocumentInfo]:
        """All of them. Raises as `documents`, and ClusterUnavailable where a shard is missing."""
        cursor = None
        while True:
            found = await self.documents(corpus, cursor, page)
            if found.failed:
                raise ClusterUnavailable(f"{', '.join(found.failed)} did not answer; see 'shardqa status'")
            for document in found.documents:
                yield document
            cursor = found.cursor
            if cursor is None:
                return

    async def _settled_page(self, corpus: str, after: str, limit: int, filter_: str) -> DocumentList:
        while True:
            page = await self._page(corpus, after, limit, filter_)
            if page is not None:
                return page
            await asyncio.sleep(PAUSE)

    async def _page(self, corpus: str, after: str, limit: int, filter_: str) -> DocumentList | None:
        """None where what comes next is between shards."""
        command: list[Argument] = ["RG.TRIGGER", "Documents", corpus, after, limit + 1]
        command += [filter_] if filter_ else []
        came, failed = values_and_failures(await self.masters.everywhere(*command), record_of)
        found = {(entry["bucket"], entry["id"]): entry for _, reply in came for entry in reply["documents"]}
        settled = {bucket for _, reply in came for bucket in reply["buckets"]}
        first = after.partition(":")[0]
        gap = next((name for name in keys.ALL_BUCKETS if name >= first and name not in settled), None)
        places = sorted(found)
        if gap is not None and not failed:
            places = [place for place in places if place[0] < gap]
            if not places:
                return None
        shown = places[:limit]
        is_more = len(places) > limit or (gap is not None and not failed)
        return DocumentList(
            corpus=corpus,
            documents=[_info(found[place]) for place in shown],
            cursor=_cursor(*shown[-1]) if shown and is_more else None,
            partial=bool(failed),
            failed=failed,
        )

    async def corpus(self, name: str, filter: DocumentFilter | None = None) -> OneCorpus:
        """With the sizes of what `filter` lets through. Raises UnknownCorpus once it is gone, ClusterUnavailable."""
        keys.check_corpus(name)
        shards, failed = await self._corpora_of_shards(filter)
        listed = list_corpora(shards, failed)
        info = next((one for one in listed.corpora if one.name == name), None)
        info = without_epoch(info) if info is not None and filter is not None else info
        told_of = shards if filter is None else []  # what is being removed may be what a filter leaves out
        dropping = [asdict(found) for told in told_of if (found := told.dropping.get(name))]
        if info is None and not dropping and not failed:
            raise UnknownCorpus(f"there is no corpus {name!r}")
        return OneCorpus(
            corpus=info,
            dropping=_dropping(name, dropping, False) if dropping else None,
            partial=listed.partial,
            failed=listed.failed,
        )

    async def drop(self, corpus: str) -> Dropping:
        """Makes a corpus unsearchable, and returns; the shards go on removing it. Once more does no harm.

        Raises UnknownCorpus, ClusterUnavailable: then those that answered have begun, and the rest is done by another
        try.
        """
        keys.check_corpus(corpus)
        covered, latest = set[str](), dict[str, dict[str, Any]]()
        try:
            async with asyncio.timeout(self.settings.timeout):
                while True:
                    covered |= await self._drop_once(corpus, latest)
                    if len(covered) == keys.BUCKETS:
                        break
                    await asyncio.sleep(PAUSE)
        except TimeoutError:
            raise ClusterUnavailable(
                f"slots were between shards for {self.settings.timeout:g} s; what was there of corpus {corpus!r} is "
                "being dropped: drop it again for the rest"
            ) from None
        left = [reply for reply in latest.values() if reply["is_left"]]
        if not left and not any(reply["documents"] for reply in latest.values()):
            raise UnknownCorpus(f"there is no corpus {corpus!r}")
        await self.scores.forget(corpus)
        return _dropping(corpus, list(latest.values()), not left)

    async def _drop_once(self, corpus: str, latest: dict[str, dict[str, Any]]) -> set[str]:
        """The buckets that the shards vouch for; `latest` has each shard's reply by its tag."""
        came, failed = values_and_failures(await self.masters.everywhere("RG.TRIGGER", "Drop", corpus), record_of)
        for _, reply in came:
            self.epochs.announce(corpus, str(reply["tag"]), int(reply["epoch"]))
            if reply["is_left"] or not latest.get(reply["tag"], reply)["documents"]:
                latest[reply["tag"]] = reply  # else its part is gone already, and the reply before told how much it was
            else:
                latest[reply["tag"]]["is_left"] = False
        if failed:
            raise ClusterUnavailable(
                f"{', '.join(failed)} did not answer; the other shards drop their part of corpus {corpus!r}: drop it "
                "again once all answer, see 'shardqa status'"
            )
        return {bucket for _, reply in came for bucket in reply["buckets"]}

    async def choose_dense(self, corpus: str, is_on: bool) -> None:
        """Whether passages of a corpus get vectors, where the cluster has an encoder, and are ranked by them, too.

        Raises as `choose_bridges`.
        """
        await self._choose("Dense", corpus, is_on)

    async def choose_bridges(self, corpus: str, is_on: bool) -> None:
        """Whether the documents count whose titles the first passages name.

        Raises BadCorpusName, ClusterUnavailable: then those shards that answered have it so, and another try does the
        rest.
        """
        await self._choose("Bridging", corpus, is_on)

    async def _choose(self, trigger: str, corpus: str, is_on: bool) -> None:
        keys.check_corpus(corpus)
        command = ("RG.TRIGGER", trigger, corpus, "on" if is_on else "off")
        _, failed = values_and_failures(await self.masters.everywhere(*command), record_of)
        if failed:
            raise ClusterUnavailable(f"{', '.join(failed)} did not answer; try again once 'shardqa status' shows all")

    async def dropping(self, corpus: str) -> AsyncIterator[Dropping]:
        """How far the removal of a dropped corpus is, until it is done."""
        latest = None
        while True:
            try:
                found = (await self.corpus(corpus)).dropping
            except UnknownCorpus:
                found = None
            if found is None:
                break
            latest = found
            yield found
            await asyncio.sleep(PAUSE)
        count = latest.documents if latest else 0
        yield Dropping(corpus=corpus, documents=count, removed=count, done=True)


def _dropping(corpus: str, parts: list[dict[str, Any]], done: bool) -> Dropping:
    documents, removed = (sum(int(part[name]) for part in parts) for name in ("documents", "removed"))
    return Dropping(corpus=corpus, documents=documents, removed=removed, done=done)


def _info(entry: dict[str, Any]) -> DocumentInfo:
    fields = {name: value for name, value in entry.items() if name != "bucket"}
    return DocumentInfo(**{**fields, "metadata": metadata.unpack(entry["metadata"])})


def _cursor(bucket: str, document: str) -> str:
    return base64.urlsafe_b64encode(f"{bucket}:{document}".encode()).decode().rstrip("=")


def _parse_cursor(cursor: str | None) -> str:
    """What comes before a page: bucket:id, or nothing."""
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
