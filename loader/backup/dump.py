"""Writes what a cluster holds and can't make again: functions, models, API keys, settings and scores of corpora,
documents, tensors and models under names of one's own.

Passages, tokens, rankings, answers and epochs are made from these, so they stay out, and keys are named anew where
they are restored. The functions and the reader that come with every version stay out, too. Each document is as it was
at one moment; those put or deleted meanwhile are in it or not. Where slots move meanwhile, documents could be missed:
that is noticed, and the backup refused.
"""

import asyncio
import json
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from redis.asyncio.cluster import ClusterNode

import shardqa
from shardqa import keys, topology
from shardqa.engine import Engine
from shardqa.engine.connections import Argument
from shardqa.errors import BadBackup, BadKey
from shardqa.loader import preparation
from shardqa.loader.backup.file import FORM, Record, RecordKind, Report, Writer, writing
from shardqa.loader.models import ShardModel, fields, text
from shardqa.models import shipped
from shardqa.retry import retry

SCANNED = 200  # keys of one SCAN
DOCUMENTS_AT_ONCE = 8  # documents read at once: what is in memory
NODE_SECONDS = 30.0  # seconds for a node that loads or is busy
# Keys that are made again from the others, as shardqa.keys spells them; models are taken by name.
MADE_AGAIN = re.compile(
    rb"(passage|tokens|rank|answer|epoch):[a-z0-9._-]+:\{[^}]+\}|ask:[a-z0-9._-]+:[0-9a-f]{12}:|model:[^{}]+:\{[^{}]+\}\Z"
    rb"|encoder:off\Z"
)
WORDS = re.compile(rb"ask:([a-z0-9._-]+):words")  # of a corpus, as shardqa.keys spells it
SWITCH = re.compile(rb"(dense|bridges):([a-z0-9._-]+):\{[^}]+\}")  # of a corpus that has this off, one a bucket
OURS = "AI_"  # how the names of the module's types begin
MODEL_FIELDS = ("backend", "device", "tag", "batchsize", "minbatchsize", "minbatchtimeout")
NO_DOCUMENT_FIELDS = frozenset({b"passages", b"digest"})  # Ingest writes them


async def dump(engine: Engine, path: Path, replace: bool = False) -> Report:
    """Writes `path`, whole or not at all.

    Raises BadBackup, ClusterUnavailable, AnswerTimeout, ShardFailed.
    """
    before = await _slots(engine)
    with writing(path, replace) as writer:
        dump = _Dump(engine, writer)
        writer.add(RecordKind.ABOUT, form=b"%d" % FORM, data=json.dumps(_about(len(before))).encode())
        await dump.functions()
        await dump.models()
        await dump.api_keys()
        for node in engine.shards.nodes():
            await dump.keyspace(node)
        for off, corpus in sorted(dump.switches):
            writer.add(RecordKind.SETTING, corpus=corpus, off=off)
        if await _slots(engine) != before:
            raise BadBackup("slots moved between shards meanwhile; run the backup again once they rest")
    return writer.report


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
    slots_served = sum(last - first + 1 for slots in by_master.values() for first, last in slots)
    if slots_served != topology.SLOTS:
        raise BadBackup(f"only {slots_served} of {topology.SLOTS} slots are served; see 'shardqa status'")
    return by_master


class _Dump:
    def __init__(self, engine: Engine, writer: Writer) -> None:
        self._engine = engine
        self._writer = writer
        self._left_out = writer.report.left_out
        self.switches = set[tuple[bytes, bytes]]()  # (what is off, corpus)

    async def functions(self) -> None:
        """Writes the scripts of RG.PYEXECUTE but shardqa's own, which every version brings along."""
        codes = {preparation.SESSION: b""}
        for node in self._engine.shards.nodes():
            for session in map(fields, await on(self._engine, node, "RG.PYDUMPSESSIONS", "CODE")):
                id_, code = text(session["ID"]), _bytes(session["code"])
                if id_ in codes:
                    if id_ != preparation.SESSION and codes[id_] != code:
                        self._left_out.append(f"function {id_}: {node.name} has another script of this name")
                    continue
                codes[id_] = code
                names = {"id": "ID", "user": "user", "description": "sessionDescription", "code": "code"}
                self._writer.add(RecordKind.FUNCTION, **{name: _bytes(session[field]) for name, field in names.items()})
            for id_ in _inactive(text(await on(self._engine, node, "INFO", "shardqa"))):
                self._left_out.append(f"function {id_}: inactive on {node.name}, whose worker could not run its script")

    async def models(self) -> None:
        """Writes readers and encoder but the shipped ones, each once: every shard has a copy under its own tag."""
        reader = ShardModel.reader(shipped.NAME, shipped.checked_folder())
        own = {(one.name, one.label) for one in (reader, preparation.shipped_encoder())}
        metas: dict[str, dict[str, Any]] = {}
        for node in self._engine.shards.nodes():
            for key in sorted(text(pair[0]) for pair in await on(self._engine, node, "AI._MODELSCAN")):
                if (name := keys.name_of_model(key)) is None:
                    continue
                meta = fields(await on(self._engine, node, "AI.MODELGET", key, "META"))
                if (name, text(meta["tag"])) in own:
                    continue
                if name in metas:
                    if meta != metas[name]:
                        self._left_out.append(f"model {key}: another one of this name is in the backup")
                    continue
                metas[name] = meta
                blob = await on(self._engine, node, "AI.MODELGET", key, "BLOB")
                content = b"".join(blob) if isinstance(blob, list) else bytes(blob)
                settings = {field: _bytes(meta[field]) for field in MODEL_FIELDS}
                self._writer.add(RecordKind.MODEL, name=name.encode(), **settings, blob=content)

    async def api_keys(self) -> None:
        """Writes each API key with the digest of its secret; the secret itself is stored nowhere."""
        api_keys = await retry(lambda: self._engine.shards.by_key(keys.API_KEYS, "HGETALL"), NODE_SECONDS)
        for id_, key in sorted(dict(api_keys).items()):
            self._writer.add(RecordKind.API_KEY, id=_bytes(id_), key=_bytes(key))

    async def keyspace(self, node: ClusterNode) -> None:
        cursor = b""
        while cursor not in (b"0", 0):
            cursor, batch = await on(self._engine, node, "SCAN", cursor or b"0", "COUNT", SCANNED)
            names = [key for key in dict.fromkeys(batch) if not MADE_AGAIN.match(key)]
            for start in range(0, len(names), DOCUMENTS_AT_ONCE):
                for record in await asyncio.gather(*map(self._record, names[start : start + DOCUMENTS_AT_ONCE])):
                    if record is not None:
                        self._writer.add(record.kind, **record.fields)

    async def _record(self, key: bytes) -> Record | None:
        """Reads a key; None for one that is not wanted, or gone meanwhile."""
        if key == keys.API_KEYS.encode() or key.startswith(keys.REQUESTS.encode()):
            return None
        if (switch := SWITCH.fullmatch(key)) is not None:
            self.switches.add((switch[1], switch[2]))
            return None
        if (own := WORDS.fullmatch(key)) is not None:
            value = await self._on_key(key, "GET")
            return None if value is None else Record(RecordKind.WORDS, {"corpus": own[1], "words": _bytes(value)})
        type_ = text(await self._on_key(key, "TYPE"))
        name_of = _document_of(key)
        if name_of is not None and type_ == "hash":
            return await self._document(key, name_of)
        if not (type_.startswith(OURS) or key.startswith((b"doc:", b"file:"))):
            return None
        content = await self._on_key(key, "DUMP")
        if content is None:
            return None
        return Record(RecordKind.KEY, {"key": key, "expires": await self._expires(key), "dump": content})

    async def _document(self, key: bytes, doc: keys.DocKey) -> Record | None:
        reply = await self._on_key(key, "HGETALL")
        pairs = reply.items() if isinstance(reply, dict) else zip(reply[::2], reply[1::2], strict=True)
        fields = [[name, value] for name, value in pairs if name not in NO_DOCUMENT_FIELDS]
        if not fields:
            return None
        place = {"corpus": doc.corpus.encode(), "id": doc.document.encode()}
        return Record(RecordKind.DOCUMENT, {**place, "expires": await self._expires(key), "fields": fields})

    async def _expires(self, key: bytes) -> bytes:
        at = int(await self._on_key(key, "PEXPIRETIME"))
        return str(at).encode() if at > 0 else b""

    async def _on_key(self, key: bytes, *command: str) -> Any:
        return await on(self._engine, self._engine.shards.owner(key), *command, key)


def _inactive(info: str) -> list[str]:
    """Returns the ids of stored sessions whose scripts could not be run."""
    lines = dict(line.split(":", 1) for line in info.splitlines() if ":" in line)
    ids = next((value for name, value in lines.items() if name.endswith("sessions_inactive_ids")), "")
    return [id_ for part in ids.split(",") if (id_ := part.strip()) and id_ != preparation.SESSION]


def _document_of(key: bytes) -> keys.DocKey | None:
    try:
        return keys.parse_doc(key.decode())
    except (BadKey, ValueError):
        return None


async def on(engine: Engine, node: ClusterNode, *command: Argument) -> Any:
    """Runs a command on one node, which may start or be busy; returns its reply."""
    return await retry(lambda: engine.shards.on(node, *command), NODE_SECONDS)


def _bytes(value: Any) -> bytes:
    return value if isinstance(value, bytes) else b"" if value is None else str(value).encode()
