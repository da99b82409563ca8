"""The ways of answering a question that the ladder compares, as a process serves them.

Libraries are imported where they are used: a process pays, in memory and in start, for what its step needs alone.
"""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from shardqa.models.reader import Batch, batches
from shardqa_toolchain.ladder.job import CACHE, ONNX, TORCH, Job, LadderServer
from shardqa_toolchain.measure import Read, read

if TYPE_CHECKING:
    from shardqa.models.session import Logits
    from shardqa_toolchain.measure import QuestionRows

    Run = Callable[[Batch], Logits]  # start and end logits of a batch, float32 [rows, tokens] each


@contextmanager
def opened(job: Job) -> Iterator[LadderServer]:
    """The server that a job names; raises BadModel for a folder that is no reader, SetupError for want of Redis."""
    server = NetworkServer(_run_of(job), job.longest if job.padded else 0)
    if job.backend == CACHE:
        from shardqa_toolchain.ladder.cache import CacheServer, redis_server

        with redis_server() as client:
            yield CacheServer(server, client)
    else:
        yield server


def _run_of(job: Job) -> Run:
    folders = [Path(folder) for folder in job.folders]
    if job.backend in (ONNX, CACHE):
        from shardqa.models.session import ReaderSession

        return ReaderSession(folders[0], job.threads).logits
    import torch

    torch.set_num_threads(job.threads)
    if job.backend == TORCH:
        return _own(folders[0], job.bf16)
    return _transformers(folders, job.bf16)


def _transformers(folders: Sequence[Path], bf16: bool) -> Run:
    """The reader's logits; the classifiers' are computed and left."""
    import torch
    import transformers

    kinds = [transformers.AutoModelForQuestionAnswering, *[transformers.AutoModelForSequenceClassification] * 9]
    networks: list[Any] = [
        kind.from_pretrained(folder, dtype=torch.float32).eval() for kind, folder in zip(kinds, folders, strict=False)
    ]
    known = [inspect.signature(network.forward).parameters for network in networks]

    def run(batch: Batch) -> Logits:
        feeds = {name: torch.from_numpy(value) for name, value in batch.feeds().items()}
        with torch.inference_mode(), torch.autocast("cpu", torch.bfloat16, enabled=bf16):
            found, *_ = (
                network(**{name: value for name, value in feeds.items() if name in names})
                for network, names in zip(networks, known, strict=True)
            )
        return found.start_logits.float().numpy(), found.end_logits.float().numpy()

    return run


def _own(folder: Path, bf16: bool) -> Run:
    import torch

    from shardqa_toolchain.training.saved import load_reader

    network = load_reader(folder).eval()

    def run(batch: Batch) -> Logits:
        feeds = {name: torch.from_numpy(value) for name, value in batch.feeds().items()}
        with torch.inference_mode(), torch.autocast("cpu", torch.bfloat16, enabled=bf16):
            start, end = network(**feeds).float().unbind(-1)
        return start.numpy(), end.numpy()

    return run


@dataclass(frozen=True, slots=True)
class NetworkServer:
    run: Run
    padded_to: int = 0  # every row gets so many tokens; 0: as many as the longest of its batch

    def answers(self, readings: Sequence[QuestionRows]) -> list[Read]:
        """The network's, from batches of like length."""
        rows = [row for reading in readings for _, row in reading.windows]
        logits_of: dict[int, Logits] = {}
        began = time.perf_counter()
        for batch in batches(rows):
            starts, ends = self.run(padded(batch, self.padded_to))
            for line, number in enumerate(batch.rows):
                logits_of[number] = starts[line, : len(rows[number])], ends[line, : len(rows[number])]
        seconds = (time.perf_counter() - began) / len(readings)
        logits = (logits_of[number] for number in range(len(rows)))
        return [read(reading, [next(logits) for _ in reading.windows], seconds) for reading in readings]


def padded(batch: Batch, tokens: int) -> Batch:
    """A batch whose rows have ``tokens`` tokens at least."""
    missing = tokens - batch.input_ids.shape[1]
    if missing <= 0:
        return batch
    arrays = (batch.input_ids, batch.attention_mask, batch.token_type_ids)
    return Batch(batch.rows, *(np.pad(value, ((0, 0), (0, missing))) for value in arrays))
