"""The way of a question: statistics, ranks, the shards' readers, one answer.

An Engine belongs to one asyncio loop; the API has one per process, the CLI one per command. It holds connections,
the epochs of the corpora and the answers of this process; everything else is in Redis.
"""

import asyncio
import json
from collections import Counter
from time import perf_counter
from typing import Any

from redis.asyncio.cluster import ClusterNode

from shardqa import keys, stored
from shardqa.answer import (
    Answer,
    Asked,
    Corpora,
    CorpusInfo,
    Document,
    Ingested,
    RankedList,
    RankedPassage,
    ShardInfo,
    ShardUse,
    Timing,
)
from shardqa.config import MAX_DOCUMENT, MAX_K, MAX_N_BEST, MAX_QUESTION, Settings
from shardqa.epochs import Epochs
from shardqa.errors import (
    AnswerTimeout,
    BadDocument,
    BadLimit,
    BadQuestion,
    ClusterUnavailable,
    DocumentTooLarge,
    QuestionTooLong,
    ShardqaError,
    UnknownCorpus,
    WrongShard,
)
from shardqa.kept import KeptAnswers
from shardqa.merging import candidates_of, conclude, sum_terms, threshold_of
from shardqa.shards import Reply, Shards

RANKINGS = 2  # of one question: a second where slots moved between ranking and reading


def _json(reply: Any) -> dict[str, Any]:
    """A function's reply: one record, JSON text."""
    record = reply[0] if isinstance(reply, list) else reply
    loaded = json.loads(record)
    assert isinstance(loaded, dict), f"a function replied {type(loaded).__name__}, not an object"
    return loaded


def _since(start: float) -> float:
    return round((perf_counter() - start) * 1_000, 3)


def _between(name: str, value: int, low: int, high: int) -> int:
    if not low <= value <= high:
        raise BadLimit(f"{name}={value} is outside {low} to {high}; choose a number in between")
    return value


class Engine:
    def __init__(self, settings: Settings, masters: Shards) -> None:
        self.settings = settings
        self.masters = masters
        self.epochs = Epochs(masters)
        self._kept = KeptAnswers(settings.cache_megabytes)

    @classmethod
    async def connect(cls, settings: Settings) -> "Engine":
        """Raises ClusterUnavailable when no node of the cluster answers."""
        engine = cls(settings, await Shards.connect(settings))
        engine.epochs.start()
        return engine

    async def close(self) -> None:
        await self.epochs.stop()
        await self.masters.close()

    # ---- asking

    async def ask(
        self,
        question: str,
        corpus: str | None = None,
        k: int | None = None,
        n_best: int | None = None,
        min_score: float | None = None,
        fresh: bool = False,
    ) -> Answer:
        """Answers `question` from the documents of `corpus`; `fresh` passes all caches of final answers by.

        Raises EmptyQuestion, QuestionTooLong, BadCorpusName, UnknownCorpus, BadLimit, TooManyRequests, AnswerTimeout,
        ClusterUnavailable (no shard answered at all; one that is missing only makes the answer `partial`), ShardFailed.
        """
        start = perf_counter()
        corpus = keys.check_corpus(self.settings.corpus if corpus is None else corpus)
        k = _between("k", self.settings.k if k is None else k, 1, MAX_K)
        n_best = _between("n_best", self.settings.n_best if n_best is None else n_best, 1, MAX_N_BEST)
        if min_score is not None and not 0 <= min_score <= 1:
            raise BadLimit(f"min_score={min_score} is outside 0 to 1; it is a probability")
        asked = self._normal(question)
        timing = Timing()
        found, cache, failed = None, None, list[str]()
        try:
            async with asyncio.timeout(self.settings.timeout):
                if not fresh:
                    found, cache = await self._cached(corpus, k, asked, timing)
                if found is None:
                    found, failed = await self._ask_shards(corpus, k, asked, timing, fresh)
        except TimeoutError:
            raise AnswerTimeout(
                f"the answer took more than {self.settings.timeout:g} s; ask again, or allow more by SHARDQA_TIMEOUT"
            ) from None
        timing.total = _since(start)
        return conclude(found, question, corpus, self.settings.model, n_best, min_score, cache, failed, timing)

    def _normal(self, question: str) -> str:
        if len(question) > MAX_QUESTION:
            raise QuestionTooLong(
                f"the question has {len(question):,} characters, more than {MAX_QUESTION:,}; ask one short question"
            )
        try:
            question.encode()
        except UnicodeEncodeError:
            raise BadQuestion("the question holds lone surrogates; encode it as UTF-8") from None
        return keys.normalise_question(question)

    async def _cached(self, corpus: str, k: int, question: str, timing: Timing) -> tuple[Asked | None, Any]:
        """From this process, else from Redis; only when the epochs of all shards are known to be current."""
        epochs = self.epochs.known(corpus)
        if epochs is None:
            return None, None
        start = perf_counter()
        key = self._ask_key(corpus, epochs, k, question)
        kept = self._kept.get(key)
        if kept is not None:
            timing.cache = _since(start)
            return kept, "process"
        found = await self._stored(key)
        timing.cache = _since(start)
        return found, "redis" if found else None

    def _ask_key(self, corpus: str, epochs: dict[str, int], k: int, question: str) -> str:
        return keys.ask(corpus, keys.corpus_epoch(epochs), self.settings.model, k, question)

    async def _stored(self, key: str) -> Asked | None:
        """The final answer in Redis; a node that is down or a value that is not ours counts as none."""
        try:
            value = await self.masters.by_key(key, "GET")
        except ClusterUnavailable:
            return None
        found = stored.unpack(value) if value is not None else None
        if found is not None:
            self._kept.put(key, found, len(value))
        return found

    async def _ask_shards(
        self, corpus: str, k: int, question: str, timing: Timing, fresh: bool
    ) -> tuple[Asked, list[str]]:
        for ranking in range(1, RANKINGS + 1):
            ranked = await self.rank(question, corpus, k)
            timing.terms, timing.rank = ranked.terms_ms, ranked.rank_ms
            start = perf_counter()
            counts = Counter((p.node, p.tag) for p in ranked.passages)
            replies = await asyncio.gather(
                *(self._read(ranked, node, tag, n, question, fresh) for (node, tag), n in sorted(counts.items())),
                return_exceptions=True,
            )
            if ranking == RANKINGS or not any(isinstance(reply, WrongShard) for reply in replies):
                break
        found, failed = self._gather(replies, sorted(counts), list(ranked.failed))
        timing.read = _since(start)
        if not failed and ranked.is_settled:
            await self._store(self._ask_key(corpus, ranked.epochs, k, question), found)
        return found, failed

    async def _read(
        self, ranked: RankedList, node_name: str, tag: str, k: int, question: str, fresh: bool
    ) -> tuple[ShardUse, dict[str, Any]]:
        """One shard's answer: a GET that its reader fills when it misses."""
        key = keys.answer(ranked.corpus, tag, ranked.epochs[tag], self.settings.model, k, question)
        node = self.masters.node(node_name)
        if node is None:
            raise ClusterUnavailable(f"node {node_name} left the cluster while it was asked; ask again")
        reply = None if fresh else await self._filled(node, key)
        if reply is None or "passages" not in reply:  # kept by an earlier version, which wrote them otherwise
            await self.masters.on(node, "UNLINK", key)
            reply = await self._filled(node, key)
        phases = {name: int(us) for name, us in reply["us"].items()}
        use = ShardUse(node=node_name, tag=tag, passages=k, cached=bool(reply["cached"]), us=phases)
        return use, reply

    async def _filled(self, node: ClusterNode, key: str) -> dict[str, Any]:
        """What is there, or what the shard's reader makes of a GET that misses."""
        value = await self.masters.on(node, "GET", key)
        if value is None:
            raise ClusterUnavailable(f"shard {node.name} has no function that fills {key[:80]!r}; see 'shardqa doctor'")
        return _json(value)

    def _gather(self, replies: list[Any], asked: list[tuple[str, str]], failed: list[str]) -> tuple[Asked, list[str]]:
        """All shards' spans; a shard that can't be reached is left out and named, any other fault is raised."""
        uses, spans = [], []
        for reply, (node, _) in zip(replies, asked, strict=True):
            if isinstance(reply, ClusterUnavailable):
                failed.append(node)
            elif isinstance(reply, BaseException):
                raise reply
            else:
                uses.append(reply[0])
                spans.append(reply[1])
        if asked and not uses:
            raise next(r for r in replies if isinstance(r, ClusterUnavailable))
        return Asked(candidates=candidates_of(spans), no_answer_below=threshold_of(spans), shards=uses), failed

    async def _store(self, key: str, asked: Asked) -> None:
        value = stored.pack(asked)
        self._kept.put(key, asked, len(value))
        try:
            await self.masters.by_key(key, "SET", value, "EX", self.settings.answer_seconds)
        except ClusterUnavailable:
            return  # the answer stands; only the next process will have to compute it

    # ---- ranking

    async def rank(self, question: str, corpus: str, limit: int) -> RankedList:
        """The best `limit` passages of all shards. Two rounds: corpus-wide statistics first, so that the order is
        the same however many shards there are. Raises UnknownCorpus, ClusterUnavailable and what `ask` raises."""
        question = self._normal(question)
        start = perf_counter()
        terms, failed = self._split(await self.masters.everywhere("RG.TRIGGER", "Terms", corpus, question))
        terms_ms = _since(start)
        statistics = sum_terms([reply for _, reply in terms])
        if statistics["documents"] == 0:
            raise self._no_documents(corpus, failed)
        start = perf_counter()
        command = ("RG.TRIGGER", "Rank", corpus, question, limit, json.dumps(statistics))
        before = {str(reply["tag"]): int(reply["epoch"]) for _, reply in terms}
        with self.epochs.reading(corpus) as reading:
            ranks, failed_ranks = self._split(await self.masters.everywhere(*command))
            failed = sorted({*failed, *failed_ranks})
            epochs = {str(reply["tag"]): int(reply["epoch"]) for _, reply in ranks}
            if not failed:
                self.epochs.learn(reading, epochs)
        passages = [
            RankedPassage(key=key, document=keys.parse_passage(key).document, score=score, node=node, tag=reply["tag"])
            for node, reply in ranks
            for key, score in reply["passages"]
        ]
        passages.sort(key=lambda p: (-p.score, p.key))
        return RankedList(
            corpus=corpus,
            question=question,
            passages=passages[:limit],
            epochs=epochs,
            is_settled=before == epochs,
            failed=failed,
            terms_ms=terms_ms,
            rank_ms=_since(start),
        )

    def _no_documents(self, corpus: str, failed: list[str]) -> ClusterUnavailable | UnknownCorpus:
        if failed:
            return ClusterUnavailable(
                f"corpus {corpus!r} has no document on the shards that answer, and {', '.join(failed)} did not; "
                "see 'shardqa status'"
            )
        return UnknownCorpus(
            f"there is no corpus {corpus!r}; GET /v1/corpora lists those there are, 'shardqa ingest' makes one"
        )

    def _split(self, replies: list[Reply]) -> tuple[list[tuple[str, dict[str, Any]]], list[str]]:
        """Replies that came and nodes that can't be reached; any other fault is raised."""
        came, failed = [], []
        for reply in replies:
            if isinstance(reply.fault, ClusterUnavailable):
                failed.append(reply.node)
            elif reply.fault is not None:
                raise reply.fault
            else:
                came.append((reply.node, _json(reply.value)))
        if not came:
            faults = [reply.fault for reply in replies if reply.fault]
            raise faults[0] if faults else ClusterUnavailable("the cluster has no masters; see 'shardqa status'")
        return came, failed

    # ---- documents

    async def put(self, document: Document) -> Ingested:
        """Stores a document and returns when it is searchable.

        Raises BadDocument, DocumentTooLarge, BadDocumentId, BadCorpusName, ClusterUnavailable.
        """
        corpus = self.settings.corpus if document.corpus is None else document.corpus
        key = keys.doc(corpus, document.id)
        self._check_text(document)
        fields = {
            "title": document.title,
            "text": document.text,
            "source": document.source,
            "metadata": json.dumps(document.metadata, ensure_ascii=False),
        }
        pairs = [part for pair in fields.items() for part in pair]
        reply = _json(await self.masters.on(self.masters.owner(key), "RG.TRIGGERONKEY", "Ingest", key, *pairs))
        self.epochs.announce(corpus, str(reply["tag"]), int(reply["epoch"]))
        return Ingested(
            corpus=corpus,
            document=document.id,
            passages=reply["passages"],
            characters=reply["characters"],
            changed=reply["changed"],
        )

    def _check_text(self, document: Document) -> None:
        if not document.text.strip():
            raise BadDocument(f"document {document.id!r} has no text; give it at least one word")
        try:
            size = len(document.text.encode())
            for other in (document.title, document.source, json.dumps(document.metadata, ensure_ascii=False)):
                other.encode()
        except UnicodeEncodeError:
            raise BadDocument(f"document {document.id!r} holds lone surrogates; re-encode it as UTF-8") from None
        if size > MAX_DOCUMENT:
            raise DocumentTooLarge(
                f"document {document.id!r} has {size:,} bytes of text, more than {MAX_DOCUMENT:,}; split it"
            )

    async def get(self, corpus: str, document: str) -> Document | None:
        found = await self.masters.by_key(keys.doc(corpus, document), "HGETALL")
        fields = {_text(name): _text(value) for name, value in dict(found).items()} if found else {}
        if "text" not in fields:
            return None
        try:
            metadata = json.loads(fields.get("metadata") or "{}")
        except json.JSONDecodeError:
            metadata = {}  # another writer's field; the document is no worse for it
        return Document(
            id=document,
            corpus=corpus,
            text=fields["text"],
            title=fields.get("title", ""),
            source=fields.get("source", ""),
            metadata=metadata if isinstance(metadata, dict) else {},
        )

    async def delete(self, corpus: str, document: str) -> bool:
        """Removes a document and all that belongs to it; False when there was none."""
        key = keys.doc(corpus, document)
        reply = _json(await self.masters.on(self.masters.owner(key), "RG.TRIGGERONKEY", "Delete", key))
        self.epochs.announce(corpus, str(reply["tag"]), int(reply["epoch"]))
        return bool(reply["deleted"])

    # ---- looking around

    async def corpora(self) -> Corpora:
        came, failed = self._split(await self.masters.everywhere("RG.TRIGGER", "Corpora"))
        failed = sorted({*failed, *(node for node, reply in came if reply.get("indexing"))})
        totals: dict[str, Counter[str]] = {}
        epochs: dict[str, dict[str, int]] = {}
        for _, reply in came:
            for name, numbers in reply["corpora"].items():
                epochs.setdefault(name, {})[reply["tag"]] = int(numbers["epoch"])
                totals.setdefault(name, Counter()).update(
                    {field: int(numbers[field]) for field in ("documents", "passages", "characters")}
                )
        found = [
            CorpusInfo(
                name=name,
                documents=total["documents"],
                passages=total["passages"],
                characters=total["characters"],
                epoch=keys.corpus_epoch(epochs[name]),
            )
            for name, total in sorted(totals.items())
            if total["documents"]
        ]
        return Corpora(corpora=found, partial=bool(failed), failed=failed)

    async def shards(self) -> list[ShardInfo]:
        """Every master, with its tag when its functions answer."""
        return [_shard_info(reply) for reply in await self.masters.everywhere("RG.TRIGGER", "Corpora")]

    async def ready(self) -> list[str]:
        """What stands in the way of answering, one sentence a shard; empty when nothing does."""
        shards = await self.shards()
        if not shards:
            return ["the cluster has no masters"]
        problems = await asyncio.gather(*(self._problem(shard) for shard in shards))
        return [f"{shard.node}: {problem}" for shard, problem in zip(shards, problems, strict=True) if problem]

    async def _problem(self, shard: ShardInfo) -> str | None:
        """What keeps one shard from answering."""
        if shard.tag is None:
            return shard.error
        if shard.indexing:
            return f"it reads its passages into its index, {shard.passages:,} so far"
        key = keys.model(self.settings.model, shard.tag)
        try:
            has_reader = bool(await self.masters.by_key(key, "EXISTS"))
        except ShardqaError as fault:
            return str(fault)
        return None if has_reader else f"the reader {key!r} is not stored; run 'shardqa prepare'"


def _shard_info(reply: Reply) -> ShardInfo:
    """Of a node's reply to Corpora."""
    if reply.fault is not None:
        return ShardInfo(node=reply.node, tag=None, error=str(reply.fault))
    told = _json(reply.value)
    passages = sum(int(numbers["passages"]) for numbers in told["corpora"].values())
    return ShardInfo(node=reply.node, tag=str(told["tag"]), indexing=bool(told.get("indexing")), passages=passages)


def _text(value: Any) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
