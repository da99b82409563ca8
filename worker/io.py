"""The worker's ways to the module and to its own threads, for whoever sends, calls or waits."""

from dataclasses import dataclass

from shardqa.worker.calls import Calls
from shardqa.worker.link import Link
from shardqa.worker.threads import Threads


@dataclass(frozen=True, slots=True)
class Io:
    link: Link
    calls: Calls
    threads: Threads
