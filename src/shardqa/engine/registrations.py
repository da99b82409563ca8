"""What functions have done, as INFO of each master tells it: for metrics, so bounded in number and in time."""

import asyncio
from dataclasses import dataclass

from redis.asyncio.cluster import ClusterNode

from shardqa.engine.connected import Connected
from shardqa.errors import ShardqaError

FIELD = "shardqa_registration_"
INFO_SECONDS = 1.0  # for one master; one that takes longer is left out
BUCKET = "le_"  # le_5ms: how many runs took so long at most


@dataclass(frozen=True, slots=True)
class RegistrationCounts:
    """Of one registration on one node."""

    node: str
    name: str
    numbers: dict[str, int]  # triggered, succeeded, failed, aborted, queue, sum_us
    buckets: dict[float, int]  # seconds -> runs that took so long at most


class RegistrationsView(Connected):
    async def registration_counts(self) -> list[RegistrationCounts]:
        """Of the masters that answer in time."""
        told = await asyncio.gather(*(self._counts_of(node) for node in self.masters.nodes()))
        return [one for found in told for one in found]

    async def _counts_of(self, node: ClusterNode) -> list[RegistrationCounts]:
        try:
            async with asyncio.timeout(INFO_SECONDS):
                reply = await self.masters.on(node, "INFO", "shardqa")
        except (ShardqaError, TimeoutError):
            return []
        return [counts_of(str(node.name), line) for line in _lines(reply)]


def counts_of(node: str, line: str) -> RegistrationCounts:
    """`name=Rank,triggered=12,…,le_5ms=3`"""
    pairs = [(name, value) for name, _, value in (pair.partition("=") for pair in line.strip().split(","))]
    counted = [(name, int(value)) for name, value in pairs if name != "name"]
    return RegistrationCounts(
        node=node,
        name=dict(pairs)["name"],
        numbers={name: number for name, number in counted if not name.startswith(BUCKET)},
        buckets={_seconds(name): number for name, number in counted if name.startswith(BUCKET)},
    )


def _lines(info: object) -> list[str]:
    """redis-py gives a dictionary or, of a node of a cluster, the text."""
    if isinstance(info, dict):
        pairs = [value for name, value in info.items() if name.startswith(FIELD)]
        return [",".join(f"{name}={value}" for name, value in one.items()) for one in pairs]
    text = info.decode(errors="replace") if isinstance(info, bytes) else str(info)
    return [line.partition(":")[2] for line in text.splitlines() if line.startswith(FIELD)]


def _seconds(bucket: str) -> float:
    return int(bucket.removeprefix(BUCKET).removesuffix("ms")) / 1000
