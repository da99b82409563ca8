"""Streams of a corpus, where the server is told to keep them: the questions that were asked of it and whether it
answered, and what readers say is right, from which an evaluation takes its questions.
"""

import logging

from shardqa import keys
from shardqa.engine.connections import Shards
from shardqa.errors import ShardqaError
from shardqa.http_schema import AskedQuestion, Feedback
from shardqa.schema import Answer

MAX_ENTRIES = 10_000  # of a corpus, about; the oldest go first
MAX_FEEDBACK = 100_000  # likewise
FIELD = "json"
READ = 2_000  # entries, the latest, that are told together

log = logging.getLogger("shardqa.engine")


class QuestionLog:
    def __init__(self, shards: Shards) -> None:
        self._shards = shards

    async def add(self, answer: Answer) -> None:
        """Notes an answer for its document's corpus, a refusal for each corpus asked. No fault costs the answer."""
        corpora = answer.corpus.split(",") if answer.document_corpus is None else [answer.document_corpus]
        fields = ("question", answer.question, "refused", int(answer.no_answer), "score", f"{answer.score:.3f}")
        for corpus in corpora:
            try:
                await self._shards.by_key(keys.asked(corpus), "XADD", "MAXLEN", "~", MAX_ENTRIES, "*", *fields)
            except ShardqaError as fault:
                log.warning("a question of %s is not noted: %s", corpus, fault)

    async def latest(self, corpus: str) -> list[AskedQuestion]:
        """Lists each question once, as it went last; refused ones first, then by how often they were asked."""
        entries = await self._shards.by_key(keys.asked(corpus), "XREVRANGE", "+", "-", "COUNT", READ)
        questions: dict[str, AskedQuestion] = {}
        for _, fields in entries:
            text = fields[b"question"].decode()
            last = AskedQuestion(question=text, refused=fields[b"refused"] == b"1", score=float(fields[b"score"]))
            questions.setdefault(text, last).times += 1
        return sorted(questions.values(), key=lambda one: (not one.refused, -one.times))

    async def forget(self, corpus: str) -> None:
        await self._shards.by_key(keys.asked(corpus), "UNLINK")


class FeedbackStreams:
    def __init__(self, shards: Shards) -> None:
        self._shards = shards

    async def add(self, corpus: str, feedback: Feedback) -> None:
        record = feedback.model_dump_json(exclude={"corpus"})
        await self._shards.by_key(keys.feedback(corpus), "XADD", "MAXLEN", "~", MAX_FEEDBACK, "*", FIELD, record)

    async def latest(self, corpus: str) -> list[Feedback]:
        """The last word on each question, in the order of the first ones."""
        entries = await self._shards.by_key(keys.feedback(corpus), "XRANGE", "-", "+")
        every = [Feedback.model_validate_json(fields[FIELD.encode()]) for _, fields in entries]
        return list({one.question: one for one in every}.values())
