"""The counts of functions and models, as INFO of each master has them: for metrics, so bounded in number and time."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from redis.asyncio.cluster import ClusterNode

from shardqa.engine.connections import Shards
from shardqa.errors import ShardqaError

REGISTRATION = "shardqa_registration_"  # how such fields of INFO begin
MODEL = "shardqa_model_"
INFO_SECONDS = 1.0  # for one node: a scrape ends soon, whatever hangs
MAX_MODELS = 50  # models of a node that are told apart
NUMBERS = ("requests", "errors", "runs", "rows", "max_batch")  # of a model
BOUNDS = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0)  # seconds, of the worker's histograms; the last place is longer
BUCKET = "le_"  # le_5ms: how many runs of a function took so long at most


@dataclass(frozen=True, slots=True)
class RegistrationCounts:
    """The counts of one registration on one node."""

    node: str
    name: str
    numbers: dict[str, int]  # triggered, succeeded, failed, aborted, queue, sum_us
    buckets: dict[float, int]  # seconds -> runs that took so long at most


@dataclass(frozen=True, slots=True)
class ModelRuns:
    """The counts of one model on one node, since the worker loaded it."""

    node: str
    model: str  # its key, as far as INFO can show it
    requests: int
    errors: int
    runs: int
    rows: int
    most_rows: int  # of one run
    waited: Sequence[int]  # requests by BOUNDS
    took: Sequence[int]  # runs by BOUNDS


@dataclass(frozen=True, slots=True)
class WorkerState:
    """The worker of one node, as its module sees it."""

    node: str
    is_ready: bool
    restarts: int
    commands: int  # that wait for it
    misses: int  # of answers' keys, that wait for it


@dataclass(frozen=True, slots=True)
class Counts:
    registrations: list[RegistrationCounts]
    models: list[ModelRuns]  # of a node with many, the first by name
    workers: list[WorkerState]


class Activity:
    def __init__(self, shards: Shards) -> None:
        self._shards = shards

    async def counts(self) -> Counts:
        """Asks the masters, and leaves out those that do not answer in time."""
        nodes = self._shards.nodes()
        infos = await asyncio.gather(*(self._info(node) for node in nodes))
        pairs = [(str(node.name), info) for node, info in zip(nodes, infos, strict=True)]
        return Counts(
            registrations=[counts for node, info in pairs for counts in registrations_of(node, info)],
            models=[runs for node, info in pairs for runs in models_of(node, info)],
            workers=[worker for node, info in pairs for worker in worker_of(node, info)],
        )

    async def _info(self, node: ClusterNode) -> object:
        try:
            async with asyncio.timeout(INFO_SECONDS):
                return await self._shards.on(node, "INFO", "shardqa")
        except (ShardqaError, TimeoutError):
            return ""


def registrations_of(node: str, info: object) -> list[RegistrationCounts]:
    """The field of a registration is like `name=Rank,triggered=12,…,le_5ms=3`."""
    lines = [words(value) for name, value in fields(info).items() if name.startswith(REGISTRATION)]
    return [_counts(node, line.pop("name"), line) for line in lines]


def _counts(node: str, name: str, line: dict[str, str]) -> RegistrationCounts:
    return RegistrationCounts(
        node=node,
        name=name,
        numbers={word: int(number) for word, number in line.items() if not word.startswith(BUCKET)},
        buckets={_seconds(word): int(number) for word, number in line.items() if word.startswith(BUCKET)},
    )


def _seconds(bucket: str) -> float:
    return int(bucket.removeprefix(BUCKET).removesuffix("ms")) / 1000


def models_of(node: str, info: object) -> list[ModelRuns]:
    """The models that have run; the field of one is like `requests=1,…,queue_us=1/0/0`."""
    lines = {name.removeprefix(MODEL): words(value) for name, value in fields(info).items() if name.startswith(MODEL)}
    runs = [_runs(node, name, line) for name, line in lines.items() if "queue_us" in line]
    return sorted(runs, key=lambda one: one.model)[:MAX_MODELS]


def _runs(node: str, name: str, line: dict[str, str]) -> ModelRuns:
    requests, errors, runs, rows, most = (int(line[word]) for word in NUMBERS)
    wait, took = (tuple(map(int, line[word].split("/"))) for word in ("queue_us", "run_us"))
    return ModelRuns(node, name, requests, errors, runs, rows, most, wait, took)


def worker_of(node: str, info: object) -> list[WorkerState]:
    """The worker of a node; none where its INFO has no field of it."""
    by_name = fields(info)
    if "shardqa_worker_state" not in by_name:
        return []
    restarts, commands, misses = (
        int(str(by_name[f"shardqa_{name}"])) for name in ("worker_restarts", "pending_requests", "pending_misses")
    )
    return [WorkerState(node, by_name["shardqa_worker_state"] == "ready", restarts, commands, misses)]


def fields(info: object) -> dict[str, object]:
    """The fields of INFO. redis-py gives a dictionary or, of a node of a cluster, the text."""
    if isinstance(info, dict):
        return {str(name): value for name, value in info.items()}
    text = info.decode(errors="replace") if isinstance(info, bytes) else str(info)
    lines = (line.partition(":") for line in text.splitlines())
    return {name: value.strip() for name, colon, value in lines if colon}


def words(value: object) -> dict[str, str]:
    """The words of a field `requests=1,…`, which redis-py parses where it parses INFO."""
    if isinstance(value, dict):
        return {str(word): str(number) for word, number in value.items()}
    pairs = (pair.partition("=") for pair in str(value).split(","))
    return {word: number for word, equals, number in pairs if equals}
