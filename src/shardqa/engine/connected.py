"""What all parts of an engine share: its connections, the epochs, and how a function's replies are read."""

from collections.abc import Callable
from time import perf_counter
from typing import Any, TypeVar

from shardqa.config import Settings
from shardqa.engine.connections import Reply, Shards
from shardqa.engine.corpus_scores import CorpusScores
from shardqa.engine.epochs import Epochs
from shardqa.errors import ClusterUnavailable

Value = TypeVar("Value")


def values_and_failures(
    replies: list[Reply], parse: Callable[[Any], Value], others_are_known: bool = False
) -> tuple[list[tuple[str, Value]], list[str]]:
    """The parsed value of each node that replied, and the nodes that can't be reached; any other fault is raised.

    So is one of these where no node replied, unless the others' values are known.
    """
    values: list[tuple[str, Value]] = []
    failed: list[str] = []
    for reply in replies:
        if isinstance(reply.fault, ClusterUnavailable):
            failed.append(reply.node)
        elif reply.fault is not None:
            raise reply.fault
        else:
            values.append((reply.node, parse(reply.value)))
    if not values and not others_are_known:
        faults = [reply.fault for reply in replies if reply.fault]
        raise faults[0] if faults else ClusterUnavailable("the cluster has no masters; see 'shardqa status'")
    return values, failed


def since(start: float) -> float:
    return round((perf_counter() - start) * 1_000, 3)


class Connected:
    def __init__(self, settings: Settings, masters: Shards) -> None:
        self.settings = settings
        self.masters = masters
        self.epochs = Epochs(masters)
        self.scores = CorpusScores(masters)
