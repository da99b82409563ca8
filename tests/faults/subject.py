"""The cluster under test: its nodes by what they are now, its processes, whether it is whole."""

import os
import signal
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

from redis import Redis
from redis.exceptions import RedisError

from shardqa import topology
from shardqa.cluster import local, node, ports, processes, redis_server
from shardqa.cluster.local import ClusterOptions, LocalCluster
from shardqa.topology import Node

SECONDS = 90.0  # for a state that will come on a machine that is busy
EXTRA = (
    ("appendfsync", "always"),  # what a node acknowledged survives kill -9
    ("maxmemory", "160mb"),  # answers and rankings are evicted, so that memory has an end
)


class Watched:
    """A cluster whose nodes are told apart by their ports. Synchronous: to be called in a thread."""

    def __init__(self, hosts: Mapping[int, str]) -> None:
        """By port."""
        self._hosts = hosts
        self.ports = list(hosts)

    def client(self, port: int) -> Redis:
        return node.client(self._hosts[port], port, timeout=3)

    def nodes(self) -> list[Node]:
        """The nodes that one which answers sees. Raises RedisError where none does."""
        for port in self.ports:
            with suppress(RedisError), self.client(port) as client:
                return topology.read(client)
        raise RedisError("no node answers")

    def masters(self) -> list[Node]:
        return [one for one in self.nodes() if one.role == "master" and one.slots]

    def replica_of(self, master: Node) -> Node | None:
        return next((one for one in self.nodes() if one.master == master.id), None)

    def role(self, port: int) -> str | None:
        with suppress(RedisError), self.client(port) as client:
            return str(client.info("replication")["role"])
        return None

    # ---- states

    def problem(self) -> str | None:
        """Says why the cluster is not whole: nodes, slots, replicas that follow, workers that are ready."""
        for port in self.ports:
            try:
                with self.client(port) as client:
                    found = _problem_of(client, len(self.ports))
            except RedisError as error:
                found = str(error)
            if found:
                return f"{port}: {found}"
        return None

    def wait_until_whole(self) -> None:
        wait(lambda: self.problem() is None, lambda: f"the cluster is whole; {self.problem()}")

    def wait_until_master(self, port: int) -> None:
        wait(lambda: self.role(port) == "master", lambda: f"{port} took over")


class Subject(Watched):
    """A local cluster with one replica of each master, and its processes."""

    def __init__(self, cluster: LocalCluster) -> None:
        super().__init__({one.port: ports.HOST for one in cluster.state.nodes})
        self.cluster = cluster

    def pid(self, port: int) -> int:
        process = next(one.process for one in self.cluster.state.nodes if one.port == port)
        assert process is not None
        return process.pid

    def worker(self, port: int) -> int:
        """The pid of a node's worker; 0 where there is none."""
        with suppress(RedisError), self.client(port) as client:
            return int(client.info("shardqa").get("shardqa_worker_pid", 0))
        return 0

    def kill(self, port: int) -> None:
        """Ends a node by kill -9."""
        process = next(one.process for one in self.cluster.state.nodes if one.port == port)
        assert process is not None
        processes.kill(process)
        redis_server.reap()

    def restart(self) -> None:
        """Starts the nodes that do not run, each on its own data."""
        self.cluster = local.start(ClusterOptions(data=self.cluster.data, extra=EXTRA))

    def signal_worker(self, port: int, number: int) -> bool:
        pid = self.worker(port)
        if pid == 0:
            return False
        with suppress(ProcessLookupError):
            os.kill(pid, number)
            return True
        return False

    def stop_node(self, port: int) -> None:
        os.kill(self.pid(port), signal.SIGSTOP)

    def continue_node(self, port: int) -> None:
        os.kill(self.pid(port), signal.SIGCONT)


def _problem_of(client: Redis, count: int) -> str | None:
    nodes, replication, worker = topology.read(client), client.info("replication"), client.info("shardqa")
    if len(nodes) != count or any(one.flags & {"fail", "fail?"} for one in nodes):
        return "it misses nodes"
    if sum(one.slot_count() for one in nodes) != topology.SLOTS or topology.myself(nodes).moving:
        return "slots are not served, or moving"
    if replication["role"] == "slave" and replication["master_link_status"] != "up":
        return "it does not follow its master"
    mine = topology.myself(nodes).id
    if replication["role"] == "master" and replication["connected_slaves"] != sum(one.master == mine for one in nodes):
        return "it misses a replica"
    if any(one.role == "master" and not one.slots for one in nodes):
        return "there is a master too many"
    if worker["shardqa_worker_state"] != "ready":
        return f"its worker is {worker['shardqa_worker_state']}"
    return None


def wait(condition: Callable[[], bool], what: Callable[[], str], seconds: float = SECONDS) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"waited {seconds:.0f} s in vain: {what()}")
        time.sleep(0.02)


def resident(pid: int) -> float | None:
    """Megabytes; None where the process has ended."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith("VmRSS")), None)
