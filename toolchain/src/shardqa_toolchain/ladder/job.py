"""Work of the ladder's processes, and of the servers in them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from shardqa_toolchain.measure import QuestionRows, Read

TRANSFORMERS, TORCH, ONNX, CACHE = "transformers", "torch", "onnx", "cache"


@dataclass(frozen=True, slots=True)
class Job:
    """One process's work; JSON values only, since it travels so."""

    # TRANSFORMERS; TORCH, shardqa's own network, for layers of unequal sizes; ONNX; CACHE, ONNX behind Redis.
    backend: str
    # The reader's; with TRANSFORMERS further ones are classifiers, asked about every row beside it.
    folders: tuple[str, ...]
    inputs: str  # file of `inputs.save`
    threads: int
    longest: int  # tokens of the longest row
    seconds: float  # whole passes over the inputs begin until so much time is over
    padded: bool = False  # every row to ``longest`` tokens
    exact: bool = False  # every paragraph cut so that rows have ``longest`` tokens, see `inputs.readings`
    batched: bool = False  # all questions at once, in batches of like length, rather than one question after another
    bf16: bool = False  # torch's autocast to bfloat16
    core: int | None = None  # run on this core alone
    scored: bool = False  # score the answers rather than time them
    # Folder of a ``scoring.json``: with ``scored``, refuse answers below its threshold, as SQuAD 2.0 does.
    scoring: str | None = None


class LadderServer(Protocol):
    def answers(self, readings: Sequence[QuestionRows]) -> list[Read]:
        """The best span of each question, in the order given."""
