"""All functions of a shard, registered as one session: the only file here that knows how RedisGears says it.

All are privileged, and demand of the client what its plain commands would need (permissions.py). The session's code is

    from shardqa.gears_functions.registration import register
    register(GearsBuilder, runtime, override_reply)
"""

from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

from shardqa import keys
from shardqa.gears_functions.functions.answer import Answer
from shardqa.gears_functions.functions.corpora import Corpora, Switches
from shardqa.gears_functions.functions.documents import Documents
from shardqa.gears_functions.functions.embed import Embed
from shardqa.gears_functions.functions.ingest import Ingest
from shardqa.gears_functions.functions.passages import Passages
from shardqa.gears_functions.functions.rank import Rank
from shardqa.gears_functions.functions.removing import Delete, Drop
from shardqa.gears_functions.functions.settling import Settling
from shardqa.gears_functions.functions.spelling import Spelling
from shardqa.gears_functions.functions.streams import IngestStreams
from shardqa.gears_functions.shard.document_lock import DocumentLock
from shardqa.gears_functions.shard.document_writer import DocumentWriter
from shardqa.gears_functions.shard.encoder import ShardEncoder
from shardqa.gears_functions.shard.encoding import Encoding
from shardqa.gears_functions.shard.epochs import ShardEpochs
from shardqa.gears_functions.shard.journal import Journal
from shardqa.gears_functions.shard.kept_answers import KeptAnswers
from shardqa.gears_functions.shard.keyspace_sync import KeyspaceSync
from shardqa.gears_functions.shard.marks import Marks
from shardqa.gears_functions.shard.model_sync import ModelSync
from shardqa.gears_functions.shard.open_changes import OpenChanges
from shardqa.gears_functions.shard.pairs import Pairs
from shardqa.gears_functions.shard.questions import ActiveQuestions
from shardqa.gears_functions.shard.rankings import Rankings
from shardqa.gears_functions.shard.removal import Removal
from shardqa.gears_functions.shard.shard_terms import ShardTerms
from shardqa.gears_functions.shard.timings import Timings
from shardqa.models import shipped
from shardqa.models.tokenizer import Tokenizer
from shardqa.worker.runtime import Runtime

LOCAL = "async_local"  # mode: on this shard alone, without holding Redis
PATIENT = {"mode": LOCAL, "ExecutionMaxIdleTime": 600_000}  # ms: waits for locks, slots that move, other shards
BESIDE = {"mode": LOCAL, "concurrency": 16}  # runs of one function: none keeps state that another meets half made
Step: TypeAlias = Callable[[Any], Awaitable[Any]]
DOCUMENT_EVENTS = ["hset", "hdel", "del", "expired", "evicted", "restore", "rename_from", "rename_to", "copy_to", "set"]


class Shard:
    """The state of this shard, built once a session, and its functions. Raises what loading the tokenizer raises."""

    def __init__(self, runtime: Runtime, override_reply: Callable[[bytes], None]) -> None:
        self.tokenizer = tokenizer = Tokenizer.load(shipped.folder())
        self.waited_for, self.questions = ActiveQuestions(), ActiveQuestions()
        self.timings, self.journal, self.models = Timings(runtime), Journal(runtime), ModelSync(runtime)
        self.lexical, self.bridgeless = Marks(runtime, keys.DENSE), Marks(runtime, keys.BRIDGES)
        self.many = Marks(runtime, keys.LANGUAGES, "on")
        pairs = self.pairs = Pairs(runtime, self.models, tokenizer, self.many)
        epochs, changes = ShardEpochs(runtime), OpenChanges()
        self.sync = sync = KeyspaceSync(runtime, epochs, changes)
        lock, removal = DocumentLock(changes, epochs, sync), Removal(runtime, sync, epochs)
        self.encoder = ShardEncoder(self.models)
        self.encoding = Encoding(runtime, sync, self.lexical, self.waited_for, self.encoder, pairs)
        terms = ShardTerms(sync, self.lexical, self.bridgeless)
        rankings = Rankings(runtime, sync, terms, self.encoder, pairs)
        writer = DocumentWriter(runtime, pairs, sync, epochs, lock, self.questions)
        self.settling = Settling(runtime, sync, lock, writer, removal, self.waited_for, pairs)
        self.many.changes = self.settling.cut_anew
        self.ingest = Ingest(runtime, sync, lock, writer, removal, self.settling.settle, pairs)
        self.delete, self.kept = Delete(runtime, lock, removal), KeptAnswers(runtime, epochs, sync)
        self.rank = Rank(runtime, pairs, sync, terms, rankings, self.timings)
        self.answer = Answer(runtime, pairs, sync, epochs, rankings, self.models, self.timings, override_reply)
        self.streams = IngestStreams(runtime, self.ingest)

    def question(self, function: Step) -> Step:
        return self.waited_for.counted(self.questions.counted(function))

    def triggers(self, runtime: Runtime) -> dict[str, Step]:
        """Returns the functions by the names that RG.TRIGGER knows."""
        question, work, sync = self.question, self.waited_for, self.sync
        corpora = Corpora(runtime, sync, self.lexical, self.encoder, self.pairs)
        switches = Switches(runtime, sync, self.lexical, self.bridgeless, self.many, self.models)
        return {
            "Terms": question(self.rank.terms),
            "Rank": question(self.rank.rank),
            "Bridge": question(self.rank.bridge),
            "Bridging": switches.bridging,
            "Languages": switches.languages,
            "Embed": question(Embed(runtime, self.encoder, self.pairs).embed),
            "Dense": switches.dense,
            "Corpora": corpora.corpora,
            "Facets": corpora.facets,
            "Shard": corpora.shard,
            "Documents": Documents(runtime, sync).documents,
            "Drop": Drop(runtime, sync, self.lexical, self.bridgeless, self.many).drop,
            "Passages": Passages(runtime, sync).passages,
            "Spelling": question(Spelling(runtime, sync, self.tokenizer).spelling),
            "Ingest": work.counted(self.ingest.one),
            "IngestMany": work.counted(self.ingest.many),
            "Delete": self.delete.delete,
            "Push": self.models.push,
            "Streams": self.streams.progress,
            "Changed": self.kept.changed,
            "Epochs": self.kept.epochs,
        }

    def follow(self, runtime: Runtime) -> None:
        """Starts all that follows keys."""
        self.streams.follow()
        self.kept.follow()
        self.sync.follow(self.settling.settle_all)
        for marks in (self.lexical, self.bridgeless, self.many):
            runtime.watch(marks.prefix, marks.changed, marks.resync)
        self.encoding.follow()


def register(builder: Callable[..., Any], runtime: Runtime, override_reply: Callable[[bytes], None]) -> None:
    """Builds the shard's state and registers its functions; raises what loading the tokenizer raises."""
    shard = Shard(runtime, override_reply)
    for trigger, function in shard.triggers(runtime).items():
        step = shard.journal.logged(trigger, function, shard.rank.request_of if trigger == "Rank" else key_of)
        builder("CommandReader", desc=f"shardqa: {trigger}").map(step).register(
            trigger=trigger, mode=LOCAL, privileged=True
        )
    _register_readers(builder, shard)
    shard.follow(runtime)


def _register_readers(builder: Callable[..., Any], shard: Shard) -> None:
    """Registers what runs by a key or an entry, and not by name."""
    reading = shard.journal.logged("GET answer:", shard.question(shard.answer.missed), shard.answer.request_of)
    builder("KeysReader", desc="shardqa: an answer that is not there yet").foreach(reading).register(
        prefix="answer:*", eventTypes=["keymiss"], commands=["get"], privileged=True, **BESIDE
    )
    builder("KeysReader", desc="shardqa: documents of any writer").foreach(shard.settling.settle).register(
        prefix="doc:*", eventTypes=DOCUMENT_EVENTS, readValue=False, **BESIDE | PATIENT
    )
    builder("KeysReader", desc="shardqa: models whose slots moved here").foreach(shard.models.arrived).register(
        prefix="model:*", eventTypes=["restore", "ai.modelstore"], readValue=False, **BESIDE
    )
    counted = shard.waited_for.counted(shard.streams.entry)
    entry = shard.journal.logged("an entry of a stream", counted, lambda entry: f"{entry['key']} {entry['id']}"[:200])
    builder("StreamReader", desc="shardqa: documents out of streams").foreach(entry).register(
        prefix=keys.INGEST_STREAMS + "*", onFailedPolicy="retry", onFailedRetryInterval=0.5, **PATIENT
    )


def key_of(record: Any) -> str:
    """Names for the log the key or the corpus that a trigger was sent with."""
    return str(record[1])[:120] if len(record) > 1 else "without arguments"
