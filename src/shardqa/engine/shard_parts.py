"""Asks the shards for their parts of a question's corpora."""

import asyncio
from collections.abc import Callable, Collection
from dataclasses import replace
from typing import Any, NamedTuple, TypeVar

from shardqa.engine.connections import Reply, Shards, values_and_failures
from shardqa.question import Question
from shardqa.rounds import Command

Value = TypeVar("Value")


class ShardPart(NamedTuple):
    """A shard's documents of a corpus."""

    corpus: str
    node: str


async def asked(
    shards: Shards,
    question: Question,
    command: Callable[[str], Command],
    parse: Callable[[Any], Value],
    but: Collection[ShardPart] = (),
    others_are_known: bool = False,
) -> tuple[list[tuple[ShardPart, Value]], list[str]]:
    """The parsed reply for each part that is not left out, and the nodes that can't be reached; `command` is of a
    corpus.

    Raises as `values_and_failures`.
    """

    async def of(corpus: str) -> list[Reply]:
        nodes = {part.node for part in but if part.corpus == corpus}
        replies = await shards.everywhere(*command(corpus), but=nodes)
        return [replace(reply, value=(corpus, reply.value)) for reply in replies]

    replies = [reply for own in await asyncio.gather(*map(of, question.corpora)) for reply in own]
    values, silent = values_and_failures(replies, lambda pair: (pair[0], parse(pair[1])), others_are_known)
    return [(ShardPart(corpus, node), value) for node, (corpus, value) in values], sorted(set(silent))
