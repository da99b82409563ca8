"""Reads a backup into a cluster, of another number of shards as well: each key is named anew and goes where it belongs.

The whole file is checked before anything is written. Documents are ingested, so that passages are cut as this version
cuts them. What was restored stays when a restore breaks off; run again with `merge` it goes on, since documents that
are there already cost little.
"""

import asyncio
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from redis.asyncio.cluster import ClusterNode

from shardqa import keys
from shardqa.description import record_of
from shardqa.engine import Engine
from shardqa.engine.catalogue import Switch
from shardqa.errors import BadBackup, BadDocument, BadDocumentId, DocumentTooLarge, ShardFailed, ShardqaError
from shardqa.loader import preparation
from shardqa.loader.backup.dump import MADE_AGAIN, on
from shardqa.loader.backup.file import BackupReader, Record, RecordKind
from shardqa.loader.ingest import FAILOVER_SECONDS, PER_SHARD, SECONDS_PER_MEGABYTE
from shardqa.loader.models import label_of, text
from shardqa.loader.tasks import run_all
from shardqa.retry import WORKER_SECONDS, retry

FIELDS = (b"title", b"text", b"source", b"metadata", b"places", b"origin")  # as Ingest takes them
FAULTS_OF_A_DOCUMENT = (BadDocument, BadDocumentId, DocumentTooLarge)


@dataclass(slots=True)
class Restored:
    path: str
    functions: int = 0
    models: int = 0
    documents: int = 0
    passages: int = 0
    api_keys: int = 0
    settings: int = 0
    scorings: int = 0
    keys: int = 0
    left_out: list[str] = field(default_factory=list)  # what was not restored and why


_Queue = asyncio.Queue[Record | None]


async def restore(
    engine: Engine,
    path: Path,
    merge: bool = False,
    adopt: bool = False,
    without: Collection[RecordKind] = (),
) -> Restored:
    """`merge` restores into a cluster that holds something already, and replaces what has the same name; `adopt`
    registers functions of other users as the one who restores; records of the kinds `without` are passed over.

    Raises BadBackup before anything is written, where the file is not as it was written or the cluster is not empty;
    and ClusterUnavailable, AnswerTimeout, ShardFailed.
    """
    with BackupReader(path) as reader:
        await asyncio.to_thread(reader.check)
        if not merge:
            await _check_empty(engine)
        await preparation.prepare(engine)
        run = _Run(engine, str(path), merge, adopt)
        await run.all(record for record in reader.records() if record.kind not in without)
    return run.restored


async def _check_empty(engine: Engine) -> None:
    for node in engine.shards.nodes():
        cursor = b"0"
        while True:
            cursor, found = await on(engine, node, "SCAN", cursor, "COUNT", 1000)
            key = next((key for key in found if not MADE_AGAIN.match(key)), None)
            if key is not None:
                raise BadBackup(
                    f"the cluster is not empty: {node.name} has {text(key[:80])}; restore into an empty one, or --merge"
                )
            if cursor in (b"0", 0):
                break


class _Run:
    """One call of `restore`; all its parts run in one loop."""

    def __init__(self, engine: Engine, path: str, merge: bool, adopt: bool) -> None:
        self._engine = engine
        self._merge = merge
        self._adopt = adopt
        self.restored = Restored(path)

    async def all(self, records: Iterator[Record]) -> None:
        tasks = max(len(self._engine.shards.nodes()), 1) * PER_SHARD
        queue = _Queue(maxsize=1)  # what is in memory: one waits, and one a task
        await run_all([*(self._put_all(queue) for _ in range(tasks)), self._read_all(records, queue, tasks)])

    async def _read_all(self, records: Iterator[Record], queue: _Queue, tasks: int) -> None:
        while (record := await asyncio.to_thread(next, records, None)) is not None:
            match record.kind:
                case RecordKind.FUNCTION:
                    await self._function(**record.fields)  # in their order: one may need another
                case RecordKind.MODEL:
                    await self._model(**record.fields)
                case RecordKind.API_KEY:
                    await self._api_key(**record.fields)
                case RecordKind.SETTING:
                    await self._setting(**record.fields)
                case RecordKind.SCORING:
                    await self._scoring(**record.fields)
                case RecordKind.WORDS:
                    await self._words(**record.fields)
                case RecordKind.DOCUMENT | RecordKind.KEY:
                    await queue.put(record)
        for _ in range(tasks):
            await queue.put(None)

    async def _put_all(self, queue: _Queue) -> None:
        while (record := await queue.get()) is not None:
            await (self._document if record.kind is RecordKind.DOCUMENT else self._key)(**record.fields)

    async def _function(self, id: bytes, user: bytes, description: bytes, code: bytes) -> None:
        node = self._engine.shards.nodes()[0]  # it tells the others
        me = await self._on(node, "ACL", "WHOAMI")
        if user != me and not self._adopt:
            self._leave_out(
                f"function {_text(id)}: it has the rights of {_text(user)}, and this is {_text(me)}; restore with "
                f"--merge as that user, or with --adopt to give it yours"
            )
            return
        described = ("DESCRIPTION", description) if description else ()
        try:
            await self._on(node, "RG.PYEXECUTE", code, "ID", id, "UPGRADE", *described)
        except ShardFailed as fault:
            self._leave_out(f"function {_text(id)}: {fault}")
            return
        self.restored.functions += 1

    async def _model(
        self,
        name: bytes,
        backend: bytes,
        device: bytes,
        tag: bytes,
        batchsize: bytes,
        minbatchsize: bytes,
        minbatchtimeout: bytes,
        blob: bytes,
    ) -> None:
        for node, slot in (await preparation.register(self._engine)).shards:
            key = keys.model(name.decode(), slot)
            there = await label_of(self._engine, node, key)
            if there == tag.decode("utf-8", "replace"):
                continue
            if there not in (None, preparation.shipped_encoder().label) and not self._merge:
                self._leave_out(f"model {key}: the cluster has another one of this name ({there}); --merge replaces it")
                return
            given = (("BATCHSIZE", batchsize), ("MINBATCHSIZE", minbatchsize), ("MINBATCHTIMEOUT", minbatchtimeout))
            batches = [word for pair in given if int(pair[1]) for word in pair]
            words = ("TAG", tag, *batches, "BLOB", blob)
            await self._on(node, "AI.MODELSTORE", key, backend, device, *words)
        self.restored.models += 1

    async def _api_key(self, id: bytes, key: bytes) -> None:
        await retry(lambda: self._engine.shards.by_key(keys.API_KEYS, "HSET", id, key), FAILOVER_SECONDS)
        self.restored.api_keys += 1

    async def _setting(self, corpus: bytes, off: bytes) -> None:
        switch: Switch = "dense" if off == b"dense" else "bridges"
        await retry(lambda: self._engine.catalogue.switch(corpus.decode(), switch, False), WORKER_SECONDS)
        self.restored.settings += 1

    async def _scoring(self, corpus: bytes, scores: bytes) -> None:
        key = keys.corpus_scoring(corpus.decode())
        await retry(lambda: self._engine.shards.by_key(key, "SET", scores), FAILOVER_SECONDS)
        self.restored.scorings += 1

    async def _words(self, corpus: bytes, words: bytes) -> None:
        key = keys.corpus_words(corpus.decode())
        await retry(lambda: self._engine.shards.by_key(key, "SET", words), FAILOVER_SECONDS)
        self.restored.settings += 1

    async def _document(self, corpus: bytes, id: bytes, expires: bytes, fields: list[list[bytes]]) -> None:
        given = {pair[0]: pair[1] for pair in fields}
        key = keys.doc(corpus.decode(), id.decode())
        known = [word for name in FIELDS if name in given for word in (name, given[name])]
        other = [word for name, value in given.items() if name not in FIELDS for word in (name, value)]
        patience = FAILOVER_SECONDS + len(given.get(b"text", b"")) / 1e6 * SECONDS_PER_MEGABYTE
        try:
            reply = record_of(await self._on_key(key, "RG.TRIGGERONKEY", "Ingest", key, *known, patience=patience))
            self._engine.epochs.announce(corpus.decode(), str(reply["tag"]), int(reply["epoch"]))
            self.restored.passages += int(reply["passages"])
        except FAULTS_OF_A_DOCUMENT:  # as it was: a hash that any client wrote, which is not searchable
            other = [word for pair in fields for word in pair]
        if other:
            await self._on_key(key, "HSET", key, *other)
        if expires:
            await self._on_key(key, "PEXPIREAT", key, expires)
        self.restored.documents += 1

    async def _key(self, key: bytes, expires: bytes, dump: bytes) -> None:
        replace = ("REPLACE",) if self._merge else ()
        try:
            await self._on_key(key, "RESTORE", key, expires or b"0", dump, "ABSTTL", *replace)
        except ShardqaError as fault:
            if not isinstance(fault, ShardFailed):
                raise
            self._leave_out(f"key {text(key)}: {fault}")
            return
        self.restored.keys += 1

    async def _on(self, node: ClusterNode, *command: Any) -> Any:
        return await retry(lambda: self._engine.shards.on(node, *command), WORKER_SECONDS)

    async def _on_key(self, key: str | bytes, *command: Any, patience: float = FAILOVER_SECONDS) -> Any:
        return await retry(lambda: self._engine.shards.on(self._engine.shards.owner(key), *command), patience)

    def _leave_out(self, why: str) -> None:
        self.restored.left_out.append(why)


def _text(value: bytes) -> str:
    return value.decode("utf-8", "replace")
