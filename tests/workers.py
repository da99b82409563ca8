"""The worker beside a running node: which process it is, and its end by SIGKILL."""

import os
import signal
from collections.abc import Container
from typing import Any

from .nodes import wait_until


def ready_worker(client: Any, but_not: Container[int] = ()) -> int:
    """The pid of the node's ready worker, once it is one `but_not` holds: state and pid come from one INFO."""

    def pid() -> int:
        info = client.info("shardqa")
        found = int(info["shardqa_worker_pid"])
        return found if info["shardqa_worker_state"] == "ready" and found not in but_not else 0

    return int(wait_until(pid, "a worker is ready"))


def kill_worker(client: Any, but_not: Container[int] = ()) -> int:
    """Ends the node's ready worker; its pid, for `but_not` of the next call.

    INFO shows a killed worker as ready until Redis has seen its end: who kills twice names the first.
    """
    pid = ready_worker(client, but_not)
    os.kill(pid, signal.SIGKILL)
    return pid
