"""Reads a backup into a cluster, of another number of shards as well: each key is named anew and goes where it belongs.

The whole file is checked before anything is written. Documents are ingested, so that passages are cut as this version
cuts them. What was restored stays when a restore breaks off; run again with `merge` it goes on, since documents that
are there already cost little.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterator
from pathlib import Path
from typing import Any

from redis.asyncio.cluster import ClusterNode

from shardqa import keys
from shardqa.description import record_of
from shardqa.engine import Engine
from shardqa.engine.catalogue import Switch
from shardqa.errors import BadBackup, BadDocument, BadDocumentId, DocumentTooLarge, ShardFailed
from shardqa.loader import preparation
from shardqa.loader.backup.dump import MADE_AGAIN, on
from shardqa.loader.backup.file import Record, RecordKind, Report, count, records
from shardqa.loader.ingest import FAILOVER_SECONDS, PER_SHARD, SECONDS_PER_MEGABYTE
from shardqa.loader.models import label_of, text
from shardqa.loader.tasks import run_all
from shardqa.retry import WORKER_SECONDS, retry

FIELDS = (b"title", b"text", b"source", b"metadata", b"places", b"origin")  # as Ingest takes them
FAULTS_OF_A_DOCUMENT = (BadDocument, BadDocumentId, DocumentTooLarge)


_Queue = asyncio.Queue[Record | None]


async def restore(
    engine: Engine, path: Path, merge: bool = False, adopt: bool = False, without: Collection[RecordKind] = ()
) -> Report:
    """Restores a backup. `merge` allows a cluster that holds data, and replaces what has the same name; `adopt`
    registers functions of other users as the one who restores; records of the kinds `without` are passed over.

    Raises BadBackup before anything is written, where the file is not as it was written or the cluster is not empty;
    and ClusterUnavailable, AnswerTimeout, ShardFailed.
    """
    await asyncio.to_thread(count, path)
    if not merge:
        await _check_empty(engine)
    await preparation.prepare(engine)
    run = _Run(engine, merge, adopt)
    await run.all(record for record in records(path) if record.kind not in without)
    return run.report


async def _check_empty(engine: Engine) -> None:
    for node in engine.shards.nodes():
        cursor = b"0"
        while True:
            cursor, names = await on(engine, node, "SCAN", cursor, "COUNT", 1000)
            key = next((key for key in names if not MADE_AGAIN.match(key)), None)
            if key is not None:
                raise BadBackup(f"the cluster is not empty: {node.name} has {text(key[:80])}; empty it, or --merge")
            if cursor in (b"0", 0):
                break


class _Run:
    """One call of `restore`; all its parts run in one loop."""

    def __init__(self, engine: Engine, merge: bool, adopt: bool) -> None:
        self._engine = engine
        self._merge = merge
        self._adopt = adopt
        self.report = Report()

    async def all(self, records: Iterator[Record]) -> None:
        tasks = max(len(self._engine.shards.nodes()), 1) * PER_SHARD
        queue = _Queue(maxsize=1)  # what is in memory: one waits, and one a task
        await run_all([*(self._put_all(queue) for _ in range(tasks)), self._read_all(records, queue, tasks)])

    async def _read_all(self, records: Iterator[Record], queue: _Queue, tasks: int) -> None:
        while (record := await asyncio.to_thread(next, records, None)) is not None:
            if record.kind in (RecordKind.DOCUMENT, RecordKind.KEY):
                await queue.put(record)
            elif record.kind is not RecordKind.ABOUT:
                await self._put(record)  # in their order: one function may need another
        for _ in range(tasks):
            await queue.put(None)

    async def _put_all(self, queue: _Queue) -> None:
        while (record := await queue.get()) is not None:
            await self._put(record)

    async def _put(self, record: Record) -> None:
        actions: dict[RecordKind, Callable[..., Awaitable[str | None]]] = {
            RecordKind.FUNCTION: self._function,
            RecordKind.MODEL: self._model,
            RecordKind.API_KEY: self._api_key,
            RecordKind.SETTING: self._setting,
            RecordKind.SCORING: self._scoring,
            RecordKind.WORDS: self._words,
            RecordKind.DOCUMENT: self._document,
            RecordKind.KEY: self._key,
        }
        fault = await actions[record.kind](**record.fields)
        if fault is None:
            self.report.records[record.kind.value] += 1
        else:
            self.report.left_out.append(fault)

    async def _function(self, id: bytes, user: bytes, description: bytes, code: bytes) -> str | None:
        node = self._engine.shards.nodes()[0]  # it tells the others
        me = await self._on(node, "ACL", "WHOAMI")
        if user != me and not self._adopt:
            return (
                f"function {text(id)}: it has the rights of {text(user)}, and this is {text(me)}; restore with "
                f"--merge as that user, or with --adopt to give it yours"
            )
        words = ("DESCRIPTION", description) if description else ()
        try:
            await self._on(node, "RG.PYEXECUTE", code, "ID", id, "UPGRADE", *words)
        except ShardFailed as fault:
            return f"function {text(id)}: {fault}"
        return None

    async def _model(self, name: bytes, backend: bytes, device: bytes, tag: bytes, **batches: bytes) -> str | None:
        blob = batches.pop("blob")
        settings = [word for option, size in batches.items() if int(size) for word in (option.upper(), size)]
        for node, slot in (await preparation.register(self._engine)).shards:
            key = keys.model(name.decode(), slot)
            there = await label_of(self._engine, node, key)
            if there == text(tag):
                continue
            if there not in (None, preparation.shipped_encoder().label) and not self._merge:
                return f"model {key}: the cluster has another one of this name ({there}); --merge replaces it"
            await self._on(node, "AI.MODELSTORE", key, backend, device, "TAG", tag, *settings, "BLOB", blob)
        return None

    async def _api_key(self, id: bytes, key: bytes) -> None:
        await self._on_key(keys.API_KEYS, "HSET", keys.API_KEYS, id, key)

    async def _setting(self, corpus: bytes, off: bytes) -> None:
        switch: Switch = "dense" if off == b"dense" else "bridges"
        await retry(lambda: self._engine.catalogue.switch(corpus.decode(), switch, False), WORKER_SECONDS)

    async def _scoring(self, corpus: bytes, scores: bytes) -> str:
        return f"scores of corpus {text(corpus)}: an older version's; today's need no fit to a corpus"

    async def _words(self, corpus: bytes, words: bytes) -> None:
        key = keys.corpus_words(corpus.decode())
        await self._on_key(key, "SET", key, words)

    async def _document(self, corpus: bytes, id: bytes, expires: bytes, fields: list[list[bytes]]) -> None:
        values = {pair[0]: pair[1] for pair in fields}
        key = keys.doc(corpus.decode(), id.decode())
        words = [word for name in FIELDS if name in values for word in (name, values[name])]
        other = [word for name, value in values.items() if name not in FIELDS for word in (name, value)]
        patience = FAILOVER_SECONDS + len(values.get(b"text", b"")) / 1e6 * SECONDS_PER_MEGABYTE
        try:
            reply = record_of(await self._on_key(key, "RG.TRIGGERONKEY", "Ingest", key, *words, patience=patience))
            self._engine.epochs.announce(corpus.decode(), str(reply["tag"]), int(reply["epoch"]))
        except FAULTS_OF_A_DOCUMENT:  # as it was: a hash that any client wrote, which is not searchable
            other = [word for pair in fields for word in pair]
        if other:
            await self._on_key(key, "HSET", key, *other)
        if expires:
            await self._on_key(key, "PEXPIREAT", key, expires)

    async def _key(self, key: bytes, expires: bytes, dump: bytes) -> str | None:
        replace = ("REPLACE",) if self._merge else ()
        try:
            await self._on_key(key, "RESTORE", key, expires or b"0", dump, "ABSTTL", *replace)
        except ShardFailed as fault:
            return f"key {text(key)}: {fault}"
        return None

    async def _on(self, node: ClusterNode, *command: Any) -> Any:
        return await retry(lambda: self._engine.shards.on(node, *command), WORKER_SECONDS)

    async def _on_key(self, key: str | bytes, *command: Any, patience: float = FAILOVER_SECONDS) -> Any:
        return await retry(lambda: self._engine.shards.on(self._engine.shards.owner(key), *command), patience)
