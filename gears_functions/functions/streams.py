"""Documents out of streams: whoever may XADD to `ingest:…` stores documents, and need not wait for them.

    XADD ingest:{b0017} * corpus handbook id leave.txt text "…" title "…"     fields as Ingest takes them
    RG.TRIGGER Streams                                                          how far this shard's streams are

An entry is taken off its stream when its document can be found. One that was under way when the worker or the node died
is done again, and finds its document there: its id makes it the same one, and its digest says that nothing is to do. So
nothing is lost and nothing doubled. What can never be done goes to `ingest-failed:…` with its reason, once, for its id
there is the entry's. What Redis or another shard refuses for now is tried until it is done, and entries behind it wait.

One entry of a stream after another, streams side by side; the worker's loop only.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from redis import RedisError, ResponseError

from shardqa import keys
from shardqa.errors import BadCorpusName, BadData, BadDocument, BadDocumentId, DocumentTooLarge, IdTaken, ShardqaError
from shardqa.gears_functions import arguments, keyspace
from shardqa.gears_functions.arguments import Record
from shardqa.gears_functions.functions.ingest import Ingest
from shardqa.worker.runtime import KeyEvent, Runtime

USAGE = "an entry of the fields corpus, id, text and what else Ingest takes"
SCAN_COUNT = 1_000  # keys looked at per SCAN
LASTING = (BadCorpusName, BadDocumentId, BadDocument, DocumentTooLarge, IdTaken, BadData)  # faults of the entry itself
CODES = {fault.code for fault in LASTING}


class IngestStreams:
    def __init__(self, runtime: Runtime, ingest: Ingest) -> None:
        self._runtime = runtime
        self._ingest = ingest
        self._names = set[str]()  # of this shard's streams, those of failed entries too

    def follow(self) -> None:
        """Keeps in mind which streams there are: looking for them reads every key's name."""
        self._runtime.watch(keys.STREAMS, self._changed, self._resync)

    # ---- entries

    async def entry(self, record: Mapping[str, Any]) -> None:
        """Stores the document of an entry. Raises what will pass: the registration then tries again."""
        try:
            key, words = _document_of(record["value"])
            await self._put(key, words)
        except ShardqaError as error:
            if not isinstance(error, LASTING):
                raise
            await self._put_aside(record, f"{error.code}: {error}")
        except RedisError as error:
            if not is_lasting(error):
                raise
            await self._put_aside(record, str(error))

    async def _put(self, key: str, words: Sequence[str | bytes]) -> None:
        if self._runtime.owns(key):
            await self._ingest.one(["Ingest", key, *words])
        else:
            await self._runtime.on_owner(key, "RG.TRIGGERONKEY", "Ingest", key, *words)

    async def _put_aside(self, record: Mapping[str, Any], reason: str) -> None:
        """Adds an entry to the failed ones under its own id, which a second try finds taken."""
        name, pairs = keys.failed_entries(record["key"]), [word for pair in record["value"].items() for word in pair]
        fields = ("stream", record["key"], "entry", record["id"], "reason", reason, *pairs)
        try:
            await self._runtime.call("XADD", name, record["id"], *fields)
        except ResponseError as error:
            if "equal or smaller" not in str(error):
                raise
            if not await self._runtime.call("XRANGE", name, record["id"], record["id"]):
                await self._runtime.call("XADD", name, "*", *fields)  # the stream was made anew, its ids began again
        self._runtime.log(f"an entry of {record['key']} is put aside in {name}: {reason}", "verbose")

    # ---- progress

    async def progress(self, record: Record) -> str:
        """Replies how many entries of this shard's streams wait, are done, and were put aside and are still there."""
        arguments.words(record, "Streams", 0, 0)
        names = sorted(self._names)
        waiting, entries, failures = 0, 0, 0
        for name, reply in zip(names, await self._runtime.calls([("XINFO", "STREAM", n) for n in names]), strict=True):
            if isinstance(reply, Exception):
                continue  # it was deleted just now, or its slot is on its way
            info = dict(zip(reply[::2], reply[1::2], strict=True))
            if name.startswith(keys.FAILED_ENTRIES):
                failures += info[b"length"]
            else:
                waiting += info[b"length"]
                entries += info[b"entries-added"]
        return arguments.reply(self._runtime, waiting=waiting, done=entries - waiting, failed=failures)

    async def _changed(self, events: Sequence[KeyEvent]) -> None:
        for event in events:
            if event.type == "stream" and event.key.startswith((keys.INGEST_STREAMS, keys.FAILED_ENTRIES)):
                self._names.add(event.key)
            else:
                self._names.discard(event.key)

    async def _resync(self, reason: str) -> None:
        streams = set[str]()
        async for names in keyspace.names(self._runtime, keys.STREAMS + "*", SCAN_COUNT, "TYPE", "stream"):
            streams.update(names)
        self._names = {name for name in streams if name.startswith((keys.INGEST_STREAMS, keys.FAILED_ENTRIES))}


def is_lasting(error: RedisError) -> bool:
    """Returns whether another shard's refusal is a fault of the entry: functions reply `ERR <code>: <sentence>`."""
    return str(error).removeprefix("ERR ").partition(":")[0] in CODES


def _document_of(value: Mapping[Any, Any]) -> tuple[str, list[str | bytes]]:
    """Returns (the document's key, the words of Ingest). Raises BadData, BadCorpusName and BadDocumentId."""
    place = dict[str, str]()
    for name in ("corpus", "id"):
        word = value.get(name)
        if not isinstance(word, str):
            fault = "no" if word is None else "not UTF-8 in its"
            raise BadData(f"the entry has {fault} field {name!r}; send {USAGE}")
        place[name] = word
    words = [word for name, field in value.items() if name not in place for word in (name, field)]
    return keys.doc(place["corpus"], place["id"]), words
