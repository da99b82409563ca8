"""All functions of a shard, registered as one session: the only file here that knows how RedisGears says it.

All are privileged, and demand of the client what its plain commands would need (permissions.py). The session's code is

    from shardqa.gears_functions.registration import register
    register(GearsBuilder, runtime, override_reply)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from shardqa import keys
from shardqa.gears_functions.answer import AnswerFunction
from shardqa.gears_functions.catalogue import Catalogues
from shardqa.gears_functions.delete import Delete
from shardqa.gears_functions.encoding import Encoding
from shardqa.gears_functions.ingest import Ingest
from shardqa.gears_functions.passages import Passages
from shardqa.gears_functions.rank import Ranks
from shardqa.gears_functions.retokenise import Retokenise
from shardqa.gears_functions.shard.encoder import ShardEncoder
from shardqa.gears_functions.shard.journal import Journal
from shardqa.gears_functions.shard.model_sync import ModelSync
from shardqa.gears_functions.shard.state import ShardState
from shardqa.gears_functions.shard.timings import Timings
from shardqa.gears_functions.streams import IngestStreams
from shardqa.gears_functions.switches import Switches
from shardqa.models import shipped
from shardqa.models.tokenizer import Tokenizer

if TYPE_CHECKING:
    from shardqa.gears_functions.runtime import Runtime

STREAM_RETRY = 0.5  # seconds
HERE = "async_local"  # on this shard alone, without holding Redis
SIDE_BY_SIDE = 16  # runs of one function: none keeps state that another could meet half made
DOCUMENT_EVENTS = ["hset", "hdel", "del", "expired", "evicted", "restore", "rename_from", "rename_to", "copy_to", "set"]


def register(builder: Callable[..., Any], runtime: Runtime, override_reply: Callable[[bytes], None]) -> None:
    """Builds the shard's state and registers its functions; raises what loading the tokenizer raises."""
    shard = ShardState(runtime, Tokenizer.load(shipped.folder()))
    timings, journal = Timings(runtime), Journal(runtime)
    models = ModelSync(runtime)
    encoder = ShardEncoder(shard.tokenizer, models)
    encoding = Encoding(shard, encoder)
    ranks = Ranks(shard, timings, encoder)
    delete = Delete(shard)
    ingest = Ingest(shard, delete)
    streams = IngestStreams(runtime, ingest)
    retokenise = Retokenise(shard, ingest, builder)
    retokenise.serve()
    catalogues, switches = Catalogues(shard), Switches(shard)
    answers = AnswerFunction(shard, ranks, models, timings, override_reply)
    heard = shard.questions.heard
    commands: dict[str, Callable[..., Any]] = {
        "Terms": heard(ranks.terms),
        "Rank": heard(ranks.rank),
        "Bridge": heard(ranks.bridge),
        "Bridging": switches.bridging,
        "Embed": heard(encoding.embed),
        "Dense": switches.dense,
        "Corpora": ranks.corpora,
        "Shard": ranks.shard,
        "Documents": catalogues.documents,
        "Drop": catalogues.drop,
        "Passages": Passages(shard).passages,
        "Ingest": heard(ingest.ingest),
        "Delete": delete.delete,
        "Push": models.push,
        "Streams": streams.progress,
        "Retokenise": retokenise.retokenise,
        "RetokeniseOne": retokenise.one,
    }
    for trigger, function in commands.items():
        logged = journal.logged(trigger, function, ranks.request_of if trigger == "Rank" else key_of)
        builder("CommandReader", desc=f"shardqa: {trigger}").map(logged).register(
            trigger=trigger, mode=HERE, privileged=True
        )
    missed = journal.logged("GET answer:", heard(answers.missed), answers.request_of)
    builder("KeysReader", desc="shardqa: an answer that is not there yet").foreach(missed).register(
        prefix="answer:*",
        eventTypes=["keymiss"],
        commands=["get"],
        mode=HERE,
        privileged=True,
        concurrency=SIDE_BY_SIDE,
    )
    builder("KeysReader", desc="shardqa: documents of any writer").foreach(ingest.settle).register(
        prefix="doc:*", eventTypes=DOCUMENT_EVENTS, readValue=False, mode=HERE, concurrency=SIDE_BY_SIDE
    )
    builder("KeysReader", desc="shardqa: models whose slots moved here").foreach(models.arrived).register(
        prefix="model:*", eventTypes=["restore", "ai.modelstore"], readValue=False, mode=HERE, concurrency=SIDE_BY_SIDE
    )
    entry = journal.logged("an entry of a stream", heard(streams.entry), entry_of)
    builder("StreamReader", desc="shardqa: documents out of streams").foreach(entry).register(
        prefix=keys.INGEST_STREAMS + "*", mode=HERE, onFailedPolicy="retry", onFailedRetryInterval=STREAM_RETRY
    )
    streams.follow()
    shard.follow(ingest.settle_all)
    encoding.follow()


def entry_of(record: Any) -> str:
    """For the log."""
    return f"{record['key']} {record['id']}"[:200]


def key_of(record: Any) -> str:
    """For the log: the key or the corpus that a trigger was sent with."""
    return str(record[1])[:120] if len(record) > 1 else "without arguments"
