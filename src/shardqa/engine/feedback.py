"""Feedback of readers on answers: a stream for each corpus, from which an evaluation takes its questions."""

from shardqa import keys
from shardqa.engine.connections import Shards
from shardqa.http_schema import Feedback

MAX_ENTRIES = 100_000  # entries of a corpus, about; the oldest go first
FIELD = "json"


class FeedbackStreams:
    def __init__(self, shards: Shards) -> None:
        self._shards = shards

    async def add(self, corpus: str, feedback: Feedback) -> None:
        record = feedback.model_dump_json(exclude={"corpus"})
        await self._shards.by_key(keys.feedback(corpus), "XADD", "MAXLEN", "~", MAX_ENTRIES, "*", FIELD, record)

    async def latest(self, corpus: str) -> list[Feedback]:
        """The last word on each question, in the order of the first ones."""
        entries = await self._shards.by_key(keys.feedback(corpus), "XRANGE", "-", "+")
        every = [Feedback.model_validate_json(fields[FIELD.encode()]) for _, fields in entries]
        return list({one.question: one for one in every}.values())
