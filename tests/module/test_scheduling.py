"""The main thread comes first where processors are scarce: turns of the main thread, niceness of the worker."""

import ctypes
import os
import struct
from collections.abc import Iterator

import pytest

from tests.nodes import Node, running_node, wait_until

from .servers import Server  # noqa: TID251 (this package is tests/module)

NICENESS = 5  # of the worker
SCHED_GETATTR = {"x86_64": 315, "aarch64": 275}


def turns(pid: int) -> int:
    """Microseconds; 0 where the kernel tells of none."""
    libc, told = ctypes.CDLL(None), ctypes.create_string_buffer(48)
    libc.syscall(SCHED_GETATTR[os.uname().machine], pid, told, len(told), 0)
    return int(struct.unpack("<IIQiIQQQ", told.raw)[5]) // 1000


def needs_turns() -> None:
    if turns(os.getpid()) == 0:
        pytest.skip("this kernel has no turns of one's own (Linux 6.12)")


def test_the_main_thread_has_short_turns_and_what_it_starts_has_the_kernels(server: Server) -> None:
    needs_turns()
    assert server.info()["slice_us"] == turns(server.pid()) == 100
    assert turns(server.worker_pid()) == turns(os.getpid())
    threads = [int(name) for name in os.listdir(f"/proc/{server.pid()}/task")]
    assert all(turns(thread) == turns(os.getpid()) for thread in threads if thread != server.pid())


def test_the_niceness_of_redis_stays_as_it_was(server: Server) -> None:
    assert os.getpriority(os.PRIO_PROCESS, server.pid()) == os.getpriority(os.PRIO_PROCESS, 0)


def test_how_long_frames_of_the_worker_hold_the_main_thread_is_told(server: Server) -> None:
    server.call(["SET", "big", "x" * (1 << 20)], ["GET", "big"])
    info = server.info()
    assert info["frame_count"] > 0
    assert info["frame_longest"] in ("CALL", "READY", "REPLY", "REGISTER", "STATS", "LOG")
    assert info["frame_us_longest"] >= info["frame_us_p50"] // 2


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    with running_node(tmp_path_factory.mktemp("nice")) as node:
        yield node


def test_all_threads_of_the_worker_but_its_heartbeat_come_after_redis(node: Node) -> None:
    with node.client() as client:
        wait_until(lambda: client.info("shardqa")["shardqa_worker_state"] == "ready", "the worker is ready")
        worker = int(client.info("shardqa")["shardqa_worker_pid"])
    ours = os.getpriority(os.PRIO_PROCESS, 0)
    nice = [os.getpriority(os.PRIO_PROCESS, int(name)) for name in os.listdir(f"/proc/{worker}/task")]
    assert nice.count(min(ours + NICENESS, 19)) == len(nice) - 1 > 1
    assert min(nice) == ours
