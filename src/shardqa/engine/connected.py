"""What all parts of an engine share: its connections, the epochs, and how a function's replies are read."""

from collections.abc import Callable
from time import perf_counter
from typing import Any, TypeVar

from shardqa.config import Settings
from shardqa.engine.connections import Reply, Shards
from shardqa.engine.corpus_scores import CorpusScores
from shardqa.engine.epochs import Epochs
from shardqa.errors import ClusterUnavailable

Told = TypeVar("Told")


def came_and_failed(
    replies: list[Reply], parse: Callable[[Any], Told], others_are_known: bool = False
) -> tuple[list[tuple[str, Told]], list[str]]:
    """Replies that came, parsed, and nodes that can't be reached; any other fault is raised.

    So is one of these where no reply came, unless what other nodes would say is known.
    """
    came: list[tuple[str, Told]] = []
    failed: list[str] = []
    for reply in replies:
        if isinstance(reply.fault, ClusterUnavailable):
            failed.append(reply.node)
        elif reply.fault is not None:
            raise reply.fault
        else:
            came.append((reply.node, parse(reply.value)))
    if not came and not others_are_known:
        faults = [reply.fault for reply in replies if reply.fault]
        raise faults[0] if faults else ClusterUnavailable("the cluster has no masters; see 'shardqa status'")
    return came, failed


def since(start: float) -> float:
    return round((perf_counter() - start) * 1_000, 3)


class Connected:
    def __init__(self, settings: Settings, masters: Shards) -> None:
        self.settings = settings
        self.masters = masters
        self.epochs = Epochs(masters)
        self.scores = CorpusScores(masters)
