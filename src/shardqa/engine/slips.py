"""Words of a question that no passage has, and that may be slips of words that some have: the shards are asked."""

from collections.abc import Sequence

from shardqa import analysis, rounds, spelling
from shardqa.description import record_of
from shardqa.engine import absence
from shardqa.engine.connections import Shards
from shardqa.engine.shard_parts import asked
from shardqa.models.subject import Subject
from shardqa.question import Question


async def corrections(shards: Shards, question: Question, absent: Sequence[str]) -> dict[str, str]:
    """What the passages have in place of words of the question that none has; nothing where a shard is silent."""
    slips = _slips(question, absent)
    if not slips:
        return {}
    replies, silent = await asked(shards, question, lambda corpus: rounds.spelling(corpus, slips), record_of)
    found = {slip: spelling.best(slip, (reply.get(slip, {}) for _, reply in replies)) for slip in slips}
    return {} if silent else {slip: word for slip, word in found.items() if word is not None}


def _slips(question: Question, absent: Sequence[str]) -> list[str]:
    """No words in quotation marks, no names and codes, which may be twins."""
    if question.view or not absent:  # a shard tells words of all its documents
        return []
    names = Subject.of(question.told).names
    words = [analysis.fold(word) for word in absence.words_of(spelling.QUOTED.sub(" ", question.wording), absent)]
    return [word for word in words if spelling.is_spelt(word) and word not in names][: spelling.MAX_WORDS]
