"""HELLO: what the module tells its worker before anything else, its arguments among it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from shardqa.worker import frames
from shardqa.worker.frames import Frame, MalformedFrame

STALL = 10.0  # seconds a function may hold the loop when requests have no deadline; else their deadline


@dataclass(frozen=True, slots=True)
class WorkerConfig:
    node: str  # id of this node, 40 hex digits
    role: str  # 'master' or 'replica'
    clustered: bool
    arguments: Mapping[str, str]  # of the module, names in lower case
    model_threads: int  # of one run of a model
    model_runs: int  # of one model at once
    model_seconds: float  # that a run of a model may take; 0: no limit
    stall: float  # seconds that a function may hold the loop

    @classmethod
    def of_hello(cls, frame: Frame) -> WorkerConfig:
        """Raises MalformedFrame."""
        protocol, node, role, has_cluster, _port, *words = frame.texts()
        if protocol != str(frames.VERSION):
            raise MalformedFrame(f"HELLO of protocol {protocol}, wanted {frames.VERSION}; build module and worker anew")
        pairs = [*zip(words[::2], words[1::2], strict=True)]
        arguments = {name.lower(): value for name, value in reversed(pairs)}  # the user's own names come last
        names = ("threads", "threads_per_queue", "execution_timeout", "timeout")
        threads, runs, run_ms, timeout_ms = (int(arguments[name]) for name in names)
        return cls(node, role, has_cluster == "1", arguments, threads, runs, run_ms / 1000, timeout_ms / 1000 or STALL)
