"""Reads a backup into a cluster, of another number of shards as well: each key is named anew and goes where it belongs.

The whole file is checked before anything is written. Documents are ingested, so that passages are cut as this version
cuts them. What was restored stays when a restore breaks off; run again with `merge` it goes on, since documents that
are there already cost little.
"""

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from redis.asyncio.cluster import ClusterNode

from shardqa import keys
from shardqa.description import record_of
from shardqa.engine import Engine
from shardqa.errors import BadBackup, BadDocument, BadDocumentId, DocumentTooLarge, ShardFailed, ShardqaError
from shardqa.loader import preparation
from shardqa.loader.backup.dump import MADE_AGAIN, on
from shardqa.loader.backup.file import BackupReader, Record, RecordKind
from shardqa.loader.ingest import PATIENCE, PATIENCE_PER_MEGABYTE, PER_SHARD
from shardqa.loader.models import label_of
from shardqa.loader.retry import WORKER_SECONDS, retry
from shardqa.loader.tasks import run_all

FIELDS = (b"title", b"text", b"source", b"metadata", b"places", b"origin")  # as Ingest takes them
FAULTS_OF_A_DOCUMENT = (BadDocument, BadDocumentId, DocumentTooLarge)


@dataclass(slots=True)
class Restored:
    path: str
    functions: int = 0
    models: int = 0
    documents: int = 0
    passages: int = 0
    keys: int = 0
    left_out: list[str] = field(default_factory=list)  # what was not restored and why


Progress = Callable[[Restored], None]
_Queue = asyncio.Queue[Record | None]


async def restore(
    engine: Engine, path: Path, merge: bool = False, adopt: bool = False, progress: Progress = lambda restored: None
) -> Restored:
    """`merge` restores into a cluster that holds something already, and replaces what has the same name; `adopt`
    registers functions of other users as the one who restores.

    Raises BadBackup before anything is written, where the file is not as it was written or the cluster is not empty;
    and ClusterUnavailable, AnswerTimeout, ShardFailed.
    """
    with BackupReader(path) as reader:
        await asyncio.to_thread(reader.check)
        if not merge:
            await _check_empty(engine)
        await preparation.prepare(engine)
        run = _Run(engine, str(path), merge, adopt, progress)
        await run.all(reader.records())
    return run.restored


async def _check_empty(engine: Engine) -> None:
    for node in engine.masters.nodes():
        cursor = b"0"
        while True:
            cursor, found = await on(engine, node, "SCAN", cursor, "COUNT", 1000)
            key = next((key for key in found if not MADE_AGAIN.match(key)), None)
            if key is not None:
                raise BadBackup(
                    f"the cluster is not empty: {node.name} has {key[:80]!r}; restore into an empty one, or --merge"
                )
            if cursor in (b"0", 0):
                break


class _Run:
    """One call of `restore`; all its parts run in one loop."""

    def __init__(self, engine: Engine, path: str, merge: bool, adopt: bool, progress: Progress) -> None:
        self._engine = engine
        self._merge = merge
        self._adopt = adopt
        self._progress = progress
        self.restored = Restored(path)

    async def all(self, records: Iterator[Record]) -> None:
        tasks = max(len(self._engine.masters.nodes()), 1) * PER_SHARD
        queue = _Queue(maxsize=1)  # what is in memory: one waits, and one a task
        await run_all([*(self._put_all(queue) for _ in range(tasks)), self._read_all(records, queue, tasks)])

    async def _read_all(self, records: Iterator[Record], queue: _Queue, tasks: int) -> None:
        while (record := await asyncio.to_thread(next, records, None)) is not None:
            match record.kind:
                case RecordKind.FUNCTION:
                    await self._function(record.items)  # in their order: one may need another
                case RecordKind.MODEL:
                    await self._model(record.items)
                case RecordKind.DOCUMENT | RecordKind.KEY:
                    await queue.put(record)
            self._progress(self.restored)
        for _ in range(tasks):
            await queue.put(None)

    async def _put_all(self, queue: _Queue) -> None:
        while (record := await queue.get()) is not None:
            await (self._document(record.items) if record.kind is RecordKind.DOCUMENT else self._key(record.items))
            self._progress(self.restored)

    async def _function(self, items: list[bytes]) -> None:
        id_, user, description, code = items
        node = self._engine.masters.nodes()[0]  # it tells the others
        me = await self._on(node, "ACL", "WHOAMI")
        if user != me and not self._adopt:
            self._leave_out(
                f"function {_text(id_)}: it has the rights of {_text(user)}, and this is {_text(me)}; restore with "
                f"--merge as that user, or with --adopt to give it yours"
            )
            return
        described = ("DESCRIPTION", description) if description else ()
        try:
            await self._on(node, "RG.PYEXECUTE", code, "ID", id_, "UPGRADE", *described)
        except ShardFailed as fault:
            self._leave_out(f"function {_text(id_)}: {fault}")
            return
        self.restored.functions += 1

    async def _model(self, items: list[bytes]) -> None:
        name, backend, device, label, size, least, wait, blob = items
        for node, tag in (await preparation.register(self._engine)).shards:
            key = keys.model(name.decode(), tag)
            there = await label_of(self._engine, node, key)
            if there == label.decode("utf-8", "replace"):
                continue
            if there is not None and not self._merge:
                self._leave_out(f"model {key}: the cluster has another one of this name ({there}); --merge replaces it")
                return
            given = (("BATCHSIZE", size), ("MINBATCHSIZE", least), ("MINBATCHTIMEOUT", wait))
            batches = [word for pair in given if int(pair[1]) for word in pair]
            words = ("TAG", label, *batches, "BLOB", blob)
            await self._on(node, "AI.MODELSTORE", key, backend, device, *words)
        self.restored.models += 1

    async def _document(self, items: list[bytes]) -> None:
        corpus, document, expires, *words = items
        given = dict(zip(words[::2], words[1::2], strict=True))
        key = keys.doc(corpus.decode(), document.decode())
        known = [word for name in FIELDS if name in given for word in (name, given[name])]
        other = [word for name, value in given.items() if name not in FIELDS for word in (name, value)]
        patience = PATIENCE + len(given.get(b"text", b"")) / 1e6 * PATIENCE_PER_MEGABYTE
        try:
            reply = record_of(await self._on_key(key, "RG.TRIGGERONKEY", "Ingest", key, *known, patience=patience))
            self._engine.epochs.announce(corpus.decode(), str(reply["tag"]), int(reply["epoch"]))
            self.restored.passages += int(reply["passages"])
        except FAULTS_OF_A_DOCUMENT:  # as it was: a hash that any client wrote, which is not searchable
            other = words
        if other:
            await self._on_key(key, "HSET", key, *other)
        if expires:
            await self._on_key(key, "PEXPIREAT", key, expires)
        self.restored.documents += 1

    async def _key(self, items: list[bytes]) -> None:
        key, expires, content = items
        replace = ("REPLACE",) if self._merge else ()
        try:
            await self._on_key(key, "RESTORE", key, expires or b"0", content, "ABSTTL", *replace)
        except ShardqaError as fault:
            if not isinstance(fault, ShardFailed):
                raise
            self._leave_out(f"key {key!r}: {fault}")
            return
        self.restored.keys += 1

    async def _on(self, node: ClusterNode, *command: Any) -> Any:
        return await retry(lambda: self._engine.masters.on(node, *command), WORKER_SECONDS)

    async def _on_key(self, key: str | bytes, *command: Any, patience: float = PATIENCE) -> Any:
        return await retry(lambda: self._engine.masters.on(self._engine.masters.owner(key), *command), patience)

    def _leave_out(self, why: str) -> None:
        self.restored.left_out.append(why)


def _text(value: bytes) -> str:
    return value.decode("utf-8", "replace")
