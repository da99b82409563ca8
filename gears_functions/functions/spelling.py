"""`Spelling`: ordinary words of this shard's passages that are nearly those of a question.

RG.TRIGGER Spelling <corpus> <word> …
"""

from collections import Counter

import orjson

from shardqa import analysis, keys
from shardqa.errors import BadData
from shardqa.gears_functions import arguments, permissions
from shardqa.gears_functions.arguments import Record
from shardqa.gears_functions.shard.keyspace_sync import KeyspaceSync
from shardqa.models.tokenizer import Tokenizer
from shardqa.spelling import MAX_WORDS, WORD, is_spelt, room_of
from shardqa.worker.runtime import Runtime

ENDINGS = frozenset(("d", "ed", "er", "ers", "es", "ing", "ly", "r", "rs", "s", "t", "y"))
PASSAGES = 3  # of a near term that are looked into


class Spelling:
    """The worker's loop only."""

    def __init__(self, runtime: Runtime, sync: KeyspaceSync, tokenizer: Tokenizer) -> None:
        self._runtime = runtime
        self._sync = sync
        self._tokenizer = tokenizer

    async def spelling(self, record: Record) -> str:
        """Replies with each word's near ones and their numbers of passages. Raises BadData."""
        corpus, *words = arguments.words(record, "Spelling <corpus> <word> …", 2, MAX_WORDS + 1)
        keys.check_corpus(corpus)
        if wrong := next((word for word in words if not is_spelt(word)), None):
            raise BadData(f"{wrong[:80]!r} is no word that a slip is looked for in; send small letters alone")
        await permissions.to_ask(self._runtime, corpus)
        await self._sync.synced()
        slips = [word for word in words if not self._is_word(word)]
        return orjson.dumps({word: dict(await self._near(corpus, word)) for word in slips}).decode()

    def _is_word(self, word: str) -> bool:
        """Whether the reader's vocabulary has the word, or what is left of it without an ending."""
        ends = self._tokenizer.passage(word).offsets[:, 1]
        return len(ends) == 1 or (len(ends) == 2 and word[ends[0] :] in ENDINGS)

    async def _near(self, corpus: str, word: str) -> Counter[str]:
        found = Counter[str]()
        for term, count, passages in self._sync.index(corpus).near(analysis.stems([word])[0], room_of(word), PASSAGES):
            replies = await self._runtime.calls([("HGET", key, "text") for key in passages])
            texts = (reply.decode("utf-8", "replace") for reply in replies if isinstance(reply, bytes))
            spelt = Counter(one for text in texts for one in WORD.findall(text) if one.islower())
            same = {one: n for one, n in spelt.items() if analysis.stems([one])[0] == term}
            if same:  # else it stands with a capital alone: a name is no slip of another
                found[max(same, key=lambda one: same[one])] += count
        return found
