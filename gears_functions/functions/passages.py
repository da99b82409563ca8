"""`Passages`: passages of a ranking with their text, where the question's words stand in them, and why they rank so.

RG.TRIGGER Passages <corpus> <question> <keys: JSON list> [<statistics: the sum of all shards' Terms, JSON>]
"""

from typing import Any

import orjson

from shardqa import checks, keys, places
from shardqa.analysis import Query, query
from shardqa.errors import BadData
from shardqa.gears_functions import arguments, permissions
from shardqa.gears_functions.arguments import Record
from shardqa.gears_functions.index import highlights
from shardqa.gears_functions.shard.keyspace_sync import KeyspaceSync
from shardqa.gears_functions.shard.rankings import MAX_LIMIT
from shardqa.rounds import StatisticsArgument
from shardqa.statistics import CorpusStatistics
from shardqa.worker.runtime import Runtime

USAGE = "Passages <corpus> <question> <keys> [<statistics>]"


class Passages:
    """The worker's loop only."""

    def __init__(self, runtime: Runtime, sync: KeyspaceSync) -> None:
        self._runtime = runtime
        self._sync = sync

    async def passages(self, record: Record) -> str:
        """Replies with those passages that are on this shard; who may ask a corpus may see what its answers are of."""
        corpus, text, keys_json, *counts = arguments.words(record, USAGE, 3, 4)
        keys.check_corpus(corpus)
        question = query(checks.question(text))
        names = _names(corpus, keys_json)
        statistics = StatisticsArgument.parse(counts[0]).statistics if counts else None
        await permissions.to_ask(self._runtime, corpus)
        await self._sync.synced()
        commands = [command for name in names for command in _reads(name)]
        replies = await self._runtime.calls(commands) if commands else []
        passages = [
            self._passage(corpus, name, fields, title, metadata, question, statistics)
            for name, fields, title, metadata in zip(names, replies[::3], replies[1::3], replies[2::3], strict=True)
            if not isinstance(fields, Exception) and fields[0] is not None
        ]
        return arguments.reply(self._runtime, passages=passages)

    def _passage(
        self,
        corpus: str,
        name: str,
        fields: list[bytes | None],
        title: Any,
        metadata: Any,
        question: Query,
        statistics: CorpusStatistics | None,
    ) -> dict[str, Any]:
        text, start, marks = fields
        words = (text or b"").decode("utf-8", "replace")
        first = int(start or 0)
        known = places.stored(marks)
        matches = highlights.matched(words, question)
        why = None if statistics is None else self._sync.index(corpus).explain(name, question, statistics)
        return {
            "key": name,
            "title": title.decode("utf-8", "replace") if isinstance(title, bytes) else "",
            "text": words,
            "start": first,
            "place": places.at(known, first),
            "places": known,
            "metadata": metadata.decode("utf-8", "replace") if isinstance(metadata, bytes) else "",
            "highlights": [(first + begin, first + end, term) for begin, end, term in matches],
            "why": why,
        }


def _reads(name: str) -> tuple[tuple[str, ...], ...]:
    title = ("HGET", keys.first_passage(name), "title")
    return ("HMGET", name, "text", "start", "places"), title, ("HGET", keys.doc_of_passage(name), "metadata")


def _names(corpus: str, keys_json: str) -> list[str]:
    """Parses the keys of passages. Raises BadData, BadKey."""
    try:
        names = orjson.loads(keys_json)
    except orjson.JSONDecodeError as error:
        raise BadData(f"the keys are not JSON: {error}; send a list of passage keys") from None
    if not isinstance(names, list) or len(names) > MAX_LIMIT or not all(isinstance(name, str) for name in names):
        raise BadData(f"keys={keys_json[:80]!r} is no list of at most {MAX_LIMIT:,} passage keys")
    for name in names:
        if keys.parse_passage(name).corpus != corpus:
            raise BadData(f"{name[:80]!r} is no passage of the corpus {corpus!r}; send keys of one corpus")
    return names
