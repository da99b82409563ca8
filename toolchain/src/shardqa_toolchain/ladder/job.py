"""What a process of the ladder is told to do."""

from __future__ import annotations

from dataclasses import dataclass

TRANSFORMERS, TORCH, ONNX, CACHE = "transformers", "torch", "onnx", "cache"


@dataclass(frozen=True, slots=True)
class Job:
    """One process's work; JSON values only, since it travels so."""

    backend: str
    """TRANSFORMERS; TORCH, shardqa's own network, for layers of unequal sizes; ONNX; CACHE, ONNX behind Redis."""
    folders: tuple[str, ...]
    """The reader's; with TRANSFORMERS further ones are classifiers, asked about every row beside it."""
    inputs: str
    """File of `inputs.save`."""
    threads: int
    longest: int
    """Tokens of the longest row."""
    seconds: float
    """Whole passes over the inputs begin until so much time is over."""
    padded: bool = False
    """Every row to ``longest`` tokens."""
    exact: bool = False
    """Every paragraph cut so that rows have ``longest`` tokens, see `inputs.readings`."""
    batched: bool = False
    """All questions at once, in batches of like length, rather than one question after another."""
    bf16: bool = False
    """torch's autocast to bfloat16."""
    core: int | None = None
    """Run on this core alone."""
    scored: bool = False
    """Score the answers rather than time them."""
    scoring: str | None = None
    """Folder of a ``scoring.json``: with ``scored``, refuse answers below its threshold, as SQuAD 2.0 does."""
