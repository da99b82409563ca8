"""What the models of each master did, as its INFO tells: for /metrics."""

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from redis.asyncio.cluster import ClusterNode

from shardqa.engine.connected import Connected

FIELD = "shardqa_model_"
SECONDS = 1.0  # for one node: a scrape ends soon, whatever hangs
MOST = 50  # models of a node that are told apart
NUMBERS = ("requests", "errors", "runs", "rows", "max_batch")  # words of a line
BOUNDS = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0)  # seconds, of the worker's histograms; the last place is longer


@dataclass(frozen=True, slots=True)
class ModelRuns:
    """Since the worker loaded the model."""

    node: str
    model: str  # its key, as far as INFO can show it
    requests: int
    errors: int
    runs: int
    rows: int
    most_rows: int  # of one run
    waited: Sequence[int]  # requests by BOUNDS
    took: Sequence[int]  # runs by BOUNDS


class ModelsView(Connected):
    async def model_runs(self) -> list[ModelRuns]:
        """Of every master that answers soon; of one with many models, the first by name."""
        told = await asyncio.gather(*(self._told_on(node) for node in self.masters.nodes()))
        return [runs for node, info in told for runs in read(node, info)]

    async def _told_on(self, node: ClusterNode) -> tuple[str, object]:
        """The node's name and its INFO; nothing for one that does not answer soon."""
        try:
            async with asyncio.timeout(SECONDS):
                told = await self.masters.reply(node, "INFO", "shardqa")
        except TimeoutError:
            return "", ""
        return told.node, "" if told.fault is not None else told.value


def read(node: str, info: object) -> list[ModelRuns]:
    """The models that have run. redis-py gives a dictionary or, of a node of a cluster, the text."""
    found = [_runs(node, name, fields) for name, fields in _lines(info) if "queue_us" in fields]
    return sorted(found, key=lambda runs: runs.model)[:MOST]


def _runs(node: str, name: str, fields: dict[str, str]) -> ModelRuns:
    requests, errors, runs, rows, most = (int(fields[word]) for word in NUMBERS)
    waited, took = (tuple(map(int, fields[word].split("/"))) for word in ("queue_us", "run_us"))
    return ModelRuns(node, name, requests, errors, runs, rows, most, waited, took)


def _lines(info: object) -> Iterator[tuple[str, dict[str, str]]]:
    """Name and fields of each line `shardqa_model_<key>:requests=1,…`."""
    for name, value in _fields(info):
        if not name.startswith(FIELD):
            continue
        if isinstance(value, dict):
            yield name.removeprefix(FIELD), {word: str(number) for word, number in value.items()}
        elif "=" in str(value):
            words = (pair.partition("=") for pair in str(value).split(","))
            yield name.removeprefix(FIELD), {word: number.strip() for word, _, number in words}


def _fields(info: object) -> Iterator[tuple[str, Any]]:
    """INFO's lines."""
    if isinstance(info, dict):
        yield from ((str(name), value) for name, value in info.items())
        return
    text = info.decode(errors="replace") if isinstance(info, bytes) else str(info)
    for line in text.splitlines():
        name, colon, value = line.partition(":")
        if colon:
            yield name, value
