"""`Embed`: the vector of a question.

RG.TRIGGER Embed <corpus> <question>       encoder null without one
"""

from collections.abc import Mapping

from shardqa import checks, keys
from shardqa.errors import NoEncoder
from shardqa.gears_functions import arguments, permissions
from shardqa.gears_functions.arguments import Record
from shardqa.gears_functions.shard.encoder import ShardEncoder
from shardqa.gears_functions.shard.pairs import Pairs
from shardqa.worker.runtime import Runtime


class Embed:
    """The worker's loop only."""

    def __init__(self, runtime: Runtime, encoder: ShardEncoder, pairs: Pairs) -> None:
        self._runtime = runtime
        self._encoder = encoder
        self._pairs = pairs

    async def embed(self, record: Record) -> str:
        corpus, text = arguments.words(record, "Embed <corpus> <question>", 2, 2)
        keys.check_corpus(corpus)
        await permissions.to_ask(self._runtime, corpus)
        vector: Mapping[str, str | None]
        try:
            vector = (await self._encoder.question(await self._pairs.of(corpus), checks.question(text))).record()
        except NoEncoder:  # no fault: vectors outlive the encoder that 'shardqa dense rm' removed
            vector = {"encoder": None}
        return arguments.reply(self._runtime, **vector)
