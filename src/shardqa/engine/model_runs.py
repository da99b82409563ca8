"""What the models of each master did, as its INFO tells: for /metrics."""

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

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
        found = await asyncio.gather(*(self._runs_on(node) for node in self.masters.nodes()))
        return [runs for of_node in found for runs in of_node]

    async def _runs_on(self, node: ClusterNode) -> list[ModelRuns]:
        try:
            async with asyncio.timeout(SECONDS):
                told = await self.masters.reply(node, "INFO", "shardqa")
        except TimeoutError:
            return []
        return [] if told.fault is not None else read(told.node, told.value)


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
    if isinstance(info, dict):
        for name, value in info.items():
            if str(name).startswith(FIELD) and isinstance(value, dict):
                yield str(name).removeprefix(FIELD), {word: str(number) for word, number in value.items()}
        return
    text = info.decode(errors="replace") if isinstance(info, bytes) else str(info)
    for line in text.splitlines():
        name, colon, value = line.partition(":")
        if colon and name.startswith(FIELD) and "=" in value:
            words = (pair.partition("=") for pair in value.split(","))
            yield name.removeprefix(FIELD), {word: number.strip() for word, _, number in words}
