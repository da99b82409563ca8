"""Writes what a cluster holds and can't make again: functions, models, API keys, settings and scores of corpora,
documents, keys.

Passages, tokens, rankings, answers and epochs are made from these, so they stay out, and keys are named anew where
they are restored. The functions and the reader that come with every version stay out, too. Each document is as it was
at one moment; those put or deleted meanwhile are in it or not. Where slots move meanwhile, documents could be missed:
that is noticed, and the backup refused.
"""

import asyncio
import json
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from redis.asyncio.cluster import ClusterNode

import shardqa
from shardqa import keys, topology
from shardqa.engine import Engine
from shardqa.engine.connections import Argument
from shardqa.errors import BadBackup, BadKey, ShardFailed
from shardqa.loader import preparation
from shardqa.loader.backup.file import FORM, Record, RecordKind, Writer
from shardqa.loader.models import ShardModel, fields, text
from shardqa.models import shipped
from shardqa.retry import retry

SCANNED = 200  # keys of one SCAN
AT_ONCE = 8  # documents read at once: what is in memory
NODE_SECONDS = 30.0  # seconds for a node that loads or is busy
# Keys that are made again from the others, as shardqa.keys spells them; models are taken by name.
MADE_AGAIN = re.compile(
    rb"(passage|tokens|rank|answer|epoch):[a-z0-9._-]+:\{[^}]+\}|ask:[a-z0-9._-]+:[0-9a-f]{12}:|model:[^{}]+:\{[^{}]+\}\Z"
    rb"|encoder:off\Z"
)
OWN = re.compile(rb"ask:([a-z0-9._-]+):(scoring|words)")  # of a corpus, as shardqa.keys spells it
MARKS = re.compile(rb"(dense|bridges):([a-z0-9._-]+):\{[^}]+\}")  # of a corpus that has this off, one a bucket
OURS = "AI_"  # how the names of the module's types begin
MODEL_FIELDS = ("backend", "device", "tag", "batchsize", "minbatchsize", "minbatchtimeout")
NO_DOCUMENT_FIELDS = frozenset({b"passages", b"digest"})  # Ingest writes them


@dataclass(slots=True)
class Dumped:
    path: str
    bytes: int = 0
    functions: int = 0
    models: int = 0
    documents: int = 0
    api_keys: int = 0
    settings: int = 0
    scorings: int = 0
    keys: int = 0
    left_out: list[str] = field(default_factory=list)  # what is not in it and why


async def dump(engine: Engine, path: Path, replace: bool = False, all_keys: bool = False) -> Dumped:
    """Writes `path`, whole or not at all; `all_keys` takes along what is not shardqa's.

    Raises BadBackup, ClusterUnavailable, AnswerTimeout, ShardFailed.
    """
    before = await _slots(engine)
    with Writer(path, replace) as writer:
        dumped = Dumped(str(path))
        writer.add(RecordKind.ABOUT, form=b"%d" % FORM, data=json.dumps(_about(len(before))).encode())
        await _functions(engine, writer, dumped)
        await _models(engine, writer, dumped)
        await _api_keys(engine, writer)
        marks = set[tuple[bytes, bytes]]()
        for node in engine.shards.nodes():
            await _keyspace(engine, node, writer, dumped, all_keys, marks)
        for off, corpus in sorted(marks):
            writer.add(RecordKind.SETTING, corpus=corpus, off=off)
        if await _slots(engine) != before:
            raise BadBackup("slots moved between shards meanwhile; run the backup again once they rest")
        counts = writer.counts
        dumped.documents, dumped.keys = counts.get(RecordKind.DOCUMENT, 0), counts.get(RecordKind.KEY, 0)
        dumped.api_keys, dumped.scorings = counts.get(RecordKind.API_KEY, 0), counts.get(RecordKind.SCORING, 0)
        dumped.settings = counts.get(RecordKind.SETTING, 0) + counts.get(RecordKind.WORDS, 0)
        dumped.bytes = writer.close()
    return dumped


def _about(shards: int) -> dict[str, Any]:
    return {"shardqa": shardqa.__version__, "made": datetime.now(UTC).isoformat(timespec="seconds"), "shards": shards}


async def _slots(engine: Engine) -> dict[str, Any]:
    """Returns which master has which slots. Raises BadBackup while some are moving, or served by no node."""
    by_master: dict[str, Any] = {}
    for node in engine.shards.nodes():
        own = topology.myself(topology.parse(text(await on(engine, node, "CLUSTER", "NODES"))))
        if own.moving:
            raise BadBackup(f"slots of {own.address} are on their way between shards; wait until they rest")
        by_master[own.id] = own.slots
    served = sum(last - first + 1 for slots in by_master.values() for first, last in slots)
    if served != topology.SLOTS:
        raise BadBackup(f"only {served} of {topology.SLOTS} slots are served; see 'shardqa status'")
    return by_master


async def _functions(engine: Engine, writer: Writer, dumped: Dumped) -> None:
    """The scripts of RG.PYEXECUTE but shardqa's own, which every version brings along."""
    seen = {preparation.SESSION: b""}
    for node in engine.shards.nodes():
        for session in await _sessions(engine, node):
            id_, code = text(session["ID"]), _bytes(session["code"])
            if id_ in seen:
                if id_ != preparation.SESSION and seen[id_] != code:
                    dumped.left_out.append(f"function {id_}: {node.name} has another script of this name")
                continue
            seen[id_] = code
            names = {"id": "ID", "user": "user", "description": "sessionDescription", "code": "code"}
            writer.add(RecordKind.FUNCTION, **{name: _bytes(session[theirs]) for name, theirs in names.items()})
            dumped.functions += 1
        for id_ in await _inactive(engine, node):
            dumped.left_out.append(f"function {id_}: inactive on {node.name}, whose worker could not run its script")


async def _sessions(engine: Engine, node: ClusterNode) -> list[dict[str, Any]]:
    reply = await on(engine, node, "RG.PYDUMPSESSIONS", "CODE")
    return [{text(name): value for name, value in zip(s[::2], s[1::2], strict=True)} for s in reply]


async def _inactive(engine: Engine, node: ClusterNode) -> list[str]:
    info = text(await on(engine, node, "INFO", "shardqa"))
    fields = dict(line.split(":", 1) for line in info.splitlines() if ":" in line)
    named = next((value for name, value in fields.items() if name.endswith("sessions_inactive_ids")), "")
    return [id_ for part in named.split(",") if (id_ := part.strip()) and id_ != preparation.SESSION]


async def _models(engine: Engine, writer: Writer, dumped: Dumped) -> None:
    """Readers and encoder but the shipped ones, once each: every shard has its own copy, under its own tag."""
    reader = ShardModel.reader(shipped.NAME, shipped.checked_folder())
    own = {(one.name, one.label) for one in (reader, preparation.shipped_encoder())}
    seen: dict[str, dict[str, Any]] = {}
    for node in engine.shards.nodes():
        for key in sorted(text(pair[0]) for pair in await on(engine, node, "AI._MODELSCAN")):
            if (name := keys.name_of_model(key)) is None:
                continue
            meta = fields(await on(engine, node, "AI.MODELGET", key, "META"))
            if (name, text(meta["tag"])) in own:
                continue
            if name in seen:
                if meta != seen[name]:
                    dumped.left_out.append(f"model {key}: another one of this name is in the backup")
                continue
            seen[name] = meta
            blob = await on(engine, node, "AI.MODELGET", key, "BLOB")
            content = b"".join(blob) if isinstance(blob, list) else bytes(blob)
            named = {field: _bytes(meta[field]) for field in MODEL_FIELDS}
            writer.add(RecordKind.MODEL, name=name.encode(), **named, blob=content)
            dumped.models += 1


async def _api_keys(engine: Engine, writer: Writer) -> None:
    """Each with the digest of its secret, as it is stored: the secret itself is nowhere."""
    stored = await retry(lambda: engine.shards.by_key(keys.API_KEYS, "HGETALL"), NODE_SECONDS)
    for id_, key in sorted(dict(stored).items()):
        writer.add(RecordKind.API_KEY, id=_bytes(id_), key=_bytes(key))


async def _keyspace(
    engine: Engine,
    node: ClusterNode,
    writer: Writer,
    dumped: Dumped,
    all_keys: bool,
    marks: set[tuple[bytes, bytes]],
) -> None:
    async for batch in _scanned(engine, node):
        for start in range(0, len(batch), AT_ONCE):
            some = [key for key in batch[start : start + AT_ONCE] if not MADE_AGAIN.match(key)]
            marks.update(match.groups() for key in some if (match := MARKS.fullmatch(key)))  # type: ignore[misc]
            found = await asyncio.gather(*(_item(engine, key, all_keys) for key in some))
            for key, record in zip(some, found, strict=True):
                if isinstance(record, str):
                    dumped.left_out.append(f"key {text(key)}: {record}")
                elif record is not None:
                    writer.add(record.kind, **record.fields)


async def _scanned(engine: Engine, node: ClusterNode) -> AsyncIterator[list[bytes]]:
    cursor = b"0"
    while True:
        cursor, found = await on(engine, node, "SCAN", cursor, "COUNT", SCANNED)
        yield list(dict.fromkeys(found))
        if text(cursor) == "0":
            return


Found = Record | str | None  # a record, why there is none, or none is wanted


async def _item(engine: Engine, key: bytes, all_keys: bool) -> Found:
    if MARKS.fullmatch(key) or key == keys.API_KEYS.encode() or key.startswith(keys.REQUESTS.encode()):
        return None
    if (own := OWN.fullmatch(key)) is not None:
        stored = await _on_key(engine, key, "GET")
        kind, name = (RecordKind.WORDS, "words") if own[2] == b"words" else (RecordKind.SCORING, "scores")
        return None if stored is None else Record(kind, {"corpus": own[1], name: _bytes(stored)})
    if (parsed := _document(key)) is not None and (record := await _hash(engine, key, parsed)) is not None:
        return record
    type_ = text(await _on_key(engine, key, "TYPE"))
    if type_ == "none" or not (all_keys or type_.startswith(OURS) or key.startswith((b"doc:", b"file:"))):
        return None
    content = await _on_key(engine, key, "DUMP")
    if content is None:
        return None
    return Record(RecordKind.KEY, {"key": key, "expires": await _expires(engine, key), "dump": content})


def _document(key: bytes) -> keys.DocKey | None:
    try:
        return keys.parse_doc(key.decode())
    except (BadKey, ValueError):
        return None


async def _hash(engine: Engine, key: bytes, parsed: keys.DocKey) -> Found:
    try:
        reply = await _on_key(engine, key, "HGETALL")
    except ShardFailed as fault:
        if "WRONGTYPE" in str(fault):
            return None
        raise
    pairs = reply.items() if isinstance(reply, dict) else zip(reply[::2], reply[1::2], strict=True)
    fields = [[name, value] for name, value in pairs if name not in NO_DOCUMENT_FIELDS]
    if not fields:
        return None
    named = {"corpus": parsed.corpus.encode(), "id": parsed.document.encode()}
    return Record(RecordKind.DOCUMENT, {**named, "expires": await _expires(engine, key), "fields": fields})


async def _expires(engine: Engine, key: bytes) -> bytes:
    at = int(await _on_key(engine, key, "PEXPIRETIME"))
    return str(at).encode() if at > 0 else b""


async def _on_key(engine: Engine, key: bytes, *command: str) -> Any:
    return await on(engine, engine.shards.owner(key), *command, key)


async def on(engine: Engine, node: ClusterNode, *command: Argument) -> Any:
    """The reply of one node, which may start or be busy."""
    return await retry(lambda: engine.shards.on(node, *command), NODE_SECONDS)


def _bytes(value: Any) -> bytes:
    return value if isinstance(value, bytes) else b"" if value is None else str(value).encode()
