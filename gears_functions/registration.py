"""All functions of a shard, registered as one session: the only file here that knows how RedisGears says it.

All are privileged, and demand of the client what its plain commands would need (permissions.py). The session's code is

    from shardqa.gears_functions.registration import register
    register(GearsBuilder, runtime, override_reply)
"""

from collections.abc import Awaitable, Callable
from typing import Any

from shardqa import keys
from shardqa.gears_functions.functions.answer import Answer
from shardqa.gears_functions.functions.corpora import Corpora
from shardqa.gears_functions.functions.delete import Delete
from shardqa.gears_functions.functions.documents import Documents
from shardqa.gears_functions.functions.drop import Drop
from shardqa.gears_functions.functions.embed import Embed
from shardqa.gears_functions.functions.ingest import Ingest
from shardqa.gears_functions.functions.ingest_many import IngestMany
from shardqa.gears_functions.functions.passages import Passages
from shardqa.gears_functions.functions.rank import Rank
from shardqa.gears_functions.functions.settling import Settling
from shardqa.gears_functions.functions.spelling import Spelling
from shardqa.gears_functions.functions.streams import IngestStreams
from shardqa.gears_functions.functions.switches import Switches
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
from shardqa.gears_functions.shard.new_documents import NewDocuments
from shardqa.gears_functions.shard.open_changes import OpenChanges
from shardqa.gears_functions.shard.questions import ActiveQuestions
from shardqa.gears_functions.shard.rankings import Rankings
from shardqa.gears_functions.shard.removal import Removal
from shardqa.gears_functions.shard.shard_terms import ShardTerms
from shardqa.gears_functions.shard.timings import Timings
from shardqa.models import shipped
from shardqa.models.tokenizer import Tokenizer
from shardqa.worker.runtime import Runtime

STREAM_RETRY = 0.5  # seconds
LOCAL = "async_local"  # mode: on this shard alone, without holding Redis
SIDE_BY_SIDE = 16  # runs of one function: none keeps state that another could meet half made
DOCUMENT_EVENTS = ["hset", "hdel", "del", "expired", "evicted", "restore", "rename_from", "rename_to", "copy_to", "set"]


def register(builder: Callable[..., Any], runtime: Runtime, override_reply: Callable[[bytes], None]) -> None:
    """Builds the shard's state and registers its functions; raises what loading the tokenizer raises."""
    tokenizer = Tokenizer.load(shipped.folder())
    epochs, changes = ShardEpochs(runtime), OpenChanges()
    sync = KeyspaceSync(runtime, epochs, changes)
    lock = DocumentLock(changes, epochs, sync)
    work, questions = ActiveQuestions(), ActiveQuestions()  # all that is waited for, and questions alone
    timings, journal = Timings(runtime), Journal(runtime)
    lexical, bridgeless = Marks(runtime, keys.DENSE), Marks(runtime, keys.BRIDGES)
    answers = KeptAnswers(runtime, epochs, sync)
    models = ModelSync(runtime)
    encoder = ShardEncoder(tokenizer, models)
    encoding = Encoding(runtime, sync, lexical, work, encoder)
    terms = ShardTerms(sync, lexical, bridgeless)
    rankings = Rankings(runtime, sync, terms, encoder)
    removal = Removal(runtime, sync, epochs)
    writer = DocumentWriter(runtime, tokenizer, sync, epochs, lock, questions)
    new = NewDocuments(tokenizer, sync, epochs, writer)

    rank = Rank(runtime, tokenizer, sync, terms, rankings, timings)
    corpora = Corpora(runtime, sync, lexical, encoder)
    switches = Switches(runtime, sync, lexical, bridgeless)
    settling = Settling(runtime, sync, lock, writer, removal, work)
    ingest = Ingest(runtime, lock, writer, removal, settling.settle)
    streams = IngestStreams(runtime, ingest)
    answer = Answer(runtime, tokenizer, sync, epochs, rankings, models, timings, override_reply)

    def question(function: Callable[[Any], Awaitable[Any]]) -> Callable[[Any], Awaitable[Any]]:
        return work.counted(questions.counted(function))

    triggers: dict[str, Callable[..., Any]] = {
        "Terms": question(rank.terms),
        "Rank": question(rank.rank),
        "Bridge": question(rank.bridge),
        "Bridging": switches.bridging,
        "Embed": question(Embed(runtime, encoder).embed),
        "Dense": switches.dense,
        "Corpora": corpora.corpora,
        "Facets": corpora.facets,
        "Shard": corpora.shard,
        "Documents": Documents(runtime, sync).documents,
        "Drop": Drop(runtime, sync, lexical, bridgeless).drop,
        "Passages": Passages(runtime, sync).passages,
        "Spelling": question(Spelling(runtime, sync).spelling),
        "Ingest": work.counted(ingest.ingest),
        "IngestMany": work.counted(IngestMany(runtime, sync, lock, writer, new, ingest).ingest),
        "Delete": Delete(runtime, lock, removal).delete,
        "Push": models.push,
        "Streams": streams.progress,
        "Changed": answers.changed,
        "Epochs": answers.epochs,
    }
    for trigger, function in triggers.items():
        step = journal.logged(trigger, function, rank.request_of if trigger == "Rank" else key_of)
        builder("CommandReader", desc=f"shardqa: {trigger}").map(step).register(
            trigger=trigger, mode=LOCAL, privileged=True
        )
    reading = journal.logged("GET answer:", question(answer.missed), answer.request_of)
    builder("KeysReader", desc="shardqa: an answer that is not there yet").foreach(reading).register(
        prefix="answer:*",
        eventTypes=["keymiss"],
        commands=["get"],
        mode=LOCAL,
        privileged=True,
        concurrency=SIDE_BY_SIDE,
    )
    builder("KeysReader", desc="shardqa: documents of any writer").foreach(settling.settle).register(
        prefix="doc:*", eventTypes=DOCUMENT_EVENTS, readValue=False, mode=LOCAL, concurrency=SIDE_BY_SIDE
    )
    builder("KeysReader", desc="shardqa: models whose slots moved here").foreach(models.arrived).register(
        prefix="model:*", eventTypes=["restore", "ai.modelstore"], readValue=False, mode=LOCAL, concurrency=SIDE_BY_SIDE
    )
    entry = journal.logged("an entry of a stream", work.counted(streams.entry), entry_of)
    builder("StreamReader", desc="shardqa: documents out of streams").foreach(entry).register(
        prefix=keys.INGEST_STREAMS + "*", mode=LOCAL, onFailedPolicy="retry", onFailedRetryInterval=STREAM_RETRY
    )
    streams.follow()
    answers.follow()
    sync.follow(settling.settle_all)
    for marks in (lexical, bridgeless):
        runtime.watch(marks.prefix, marks.changed, marks.resync)
    encoding.follow()


def entry_of(record: Any) -> str:
    """Names an entry for the log."""
    return f"{record['key']} {record['id']}"[:200]


def key_of(record: Any) -> str:
    """Names for the log the key or the corpus that a trigger was sent with."""
    return str(record[1])[:120] if len(record) > 1 else "without arguments"
