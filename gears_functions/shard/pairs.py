"""What a corpus is read with: the shipped reader and encoder, which know English, or the pair of many languages.

A pair has a tokenizer of its own, in a note of its reader's file: passages are cut by it, and rows made. A corpus of
many languages is marked as such (marks.py); where its mark comes or goes, `Settling` cuts its documents anew.

The worker's loop only.
"""

from dataclasses import dataclass

from shardqa import keys
from shardqa.gears_functions.shard.marks import Marks
from shardqa.gears_functions.shard.model_sync import ModelSync
from shardqa.models.tokenizer import TOKENIZER_FILE, Tokenizer
from shardqa.worker.runtime import Runtime


@dataclass(frozen=True, slots=True)
class Pair:
    tokenizer: Tokenizer
    encoder: str = keys.ENCODER  # its model's name
    reader: str | None = None  # None: that which the key of an answer names


class Pairs:
    def __init__(self, runtime: Runtime, copies: ModelSync, english: Tokenizer, many: Marks) -> None:
        self._runtime = runtime
        self._copies = copies
        self._english = Pair(english)
        self._marks = many
        self._many: tuple[str | None, Pair] | None = None  # with the label of its reader

    def encoder_of(self, corpus: str) -> str:
        """Returns the name of the encoder's model."""
        return keys.MANY_ENCODER if self._marks.covers(corpus) else keys.ENCODER

    async def cut_by(self, corpus: str) -> str:
        """Returns what the digest of a document's passages says of who cut them, once that is known."""
        await self._marks.known.wait()
        return keys.LANGUAGES if self._marks.covers(corpus) else ""

    async def of(self, corpus: str) -> Pair:
        """Raises ClusterUnavailable where no shard has the pair, or it is long on its way."""
        await self._marks.known.wait()
        if not self._marks.covers(corpus):
            return self._english
        if self._known is None:
            note = await self._copies.note(keys.MANY_READER, TOKENIZER_FILE)
            if self._known is None:  # else whoever waited beside has made it
                with self._runtime.shown(f"loading the tokenizer of {keys.MANY_READER}", loads=True):
                    tokenizer = Tokenizer.parse(note)  # a second, in which the library keeps the interpreter's lock
                pair = Pair(tokenizer, keys.MANY_ENCODER, keys.MANY_READER)
                self._many = self._copies.loaded_label(keys.MANY_READER), pair
        assert self._many is not None
        return self._many[1]

    @property
    def _known(self) -> Pair | None:
        """The pair of many languages as it was made of the reader that is loaded now."""
        label, pair = self._many or (None, None)
        return pair if label == self._copies.loaded_label(keys.MANY_READER) else None
