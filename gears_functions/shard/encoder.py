"""This shard's copies of the encoders: vectors of questions and passages, each with the id of what made it.

The worker's loop only; the network runs in the model's own thread, a row at a time: more at once are no faster, and a
question would wait for all of them.
"""

from typing import Any

import numpy as np
from cachetools import LRUCache
from numpy.typing import NDArray

from shardqa import keys
from shardqa.errors import NoEncoder
from shardqa.gears_functions.shard.model_sync import ModelSync
from shardqa.gears_functions.shard.pairs import Pair
from shardqa.models import embedding
from shardqa.models.embedding import PassageRow, StoredVectors
from shardqa.models.reader import Row
from shardqa.statistics import QuestionVector

REMEMBERED = 512  # vectors of questions, 0.5 KB each: a question is often asked, then explained


class ShardEncoder:
    def __init__(self, copies: ModelSync) -> None:
        self._copies = copies
        self._recent: LRUCache[tuple[str, str], bytes] = LRUCache(REMEMBERED)  # by encoder, question

    async def id(self, name: str) -> str | None:
        """Returns the id that the vectors of an encoder have; None where this shard does not have it."""
        if not await self._copies.has(name):
            return None  # it is looked for often: a command that fails would show among Redis' errors
        label = self._copies.loaded_label(name) or await self._copies.label(name)
        return None if label is None else embedding.encoder_of_label(label)

    async def ids(self) -> dict[str, str | None]:
        """Returns the ids of all encoders, by their names."""
        return {name: await self.id(name) for name in (keys.ENCODER, keys.MANY_ENCODER)}

    async def question(self, pair: Pair, question: str) -> QuestionVector:
        """Returns a question's vector. Raises NoEncoder, QuestionTooLong, and what running a model raises."""
        encoder = await self.id(pair.encoder)
        if encoder is None:
            raise NoEncoder("this shard has no encoder; 'shardqa dense push' stores it on every shard")
        known = self._recent.get((encoder, question))
        vector = known or await self._vector(pair, question)
        if known is None and await self.id(pair.encoder) != encoder:
            raise NoEncoder("the encoder was replaced meanwhile; ask again")
        self._recent[encoder, question] = vector
        return QuestionVector(encoder, vector)

    async def _vector(self, pair: Pair, question: str) -> bytes:
        outputs = await self._run(pair, embedding.row(pair.tokenizer.question(question)))
        return outputs[embedding.OUTPUT].ravel().astype(np.int8, copy=False).tobytes()

    async def passage(self, pair: Pair, encoder: str, title: str, text: str) -> StoredVectors:
        """Returns the vectors of a text, which is cut anew: stored pieces may be of another, and cutting costs 1 %.

        The caller checks whether the encoder is still this one before it stores that. Raises what running a model
        raises.
        """
        passage = PassageRow.of(pair.tokenizer, title, text)
        return StoredVectors.of(encoder, title, text, passage.vectors(await self._run(pair, passage.row)))

    async def obtain(self, name: str) -> None:
        """Has another shard send its copy. Raises ClusterUnavailable when none has it."""
        await self._copies.obtain(name)

    async def _run(self, pair: Pair, row: Row) -> dict[str, NDArray[Any]]:
        return await self._copies.run(pair.encoder, row.feeds(), list(embedding.OUTPUTS))
