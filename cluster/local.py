"""A local cluster of real redis-server nodes on loopback, kept in one data directory.

Ownership: `start` records every process it starts (pid and start time) in the directory's state file before it goes on;
`stop` ends exactly those. Nodes outlive the command that started them unless it stops them. The cluster is made by our
own CLUSTER commands, since `redis-cli --cluster create` refuses fewer than three masters.
"""

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from redis import Redis
from redis.exceptions import BusyLoadingError, RedisError, ResponseError

from shardqa import extras, topology
from shardqa.cluster import node as talk
from shardqa.cluster import ports, processes, redis_server, state
from shardqa.cluster.redis_server import NodeConfig
from shardqa.cluster.state import ClusterState, NodeState
from shardqa.errors import SetupError

DEFAULT_SHARDS = 3
DEFAULT_PORT = 7000
DEFAULT_BUS_OFFSET = 10_000  # Redis' own convention
READY_SECONDS = 60.0  # for a new cluster to agree; loading a big AOF may take longer, which is not counted
MODELS = "models"  # folder of the models that nodes share
MAX_NODES = 64  # a local cluster is for trying and testing; more only exhausts the machine

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class ClusterOptions:
    """The shape of a cluster; None stands for what the data directory has, else for the default."""

    data: Path
    shards: int | None = None
    replicas: int | None = None  # of each master
    port: int | None = None
    threads: int = 1  # runs of one model at once on each node
    share_models: bool = False  # large ones lie in one file for all nodes
    bus_offset: int | None = None
    module: Path | None = None  # None: the built one
    extra: tuple[tuple[str, ...], ...] = ()  # further configuration lines of every node
    module_arguments: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class LocalCluster:
    data: Path
    state: ClusterState
    started: tuple[NodeState, ...]  # those that this call started

    @property
    def addresses(self) -> list[tuple[str, int]]:
        return [(ports.HOST, node.port) for node in self.state.nodes]

    def seed(self) -> str:
        return f"{ports.HOST}:{self.state.port}"


def start(options: ClusterOptions, say: Say = lambda text: None) -> LocalCluster:
    """Starts what does not run yet and returns when every node reports cluster_state:ok.

    Raises SetupError: no libraries of the worker, no redis-server, Redis before 7.0, module not built, port in use,
    data of another version or shape, or a node that ended or did not come up. What was started is stopped again before
    the error leaves.
    """
    data = options.data.resolve()
    _check_counts(options)
    extras.need(*extras.WORKER, extra="worker")
    server = redis_server.find_server()
    module = options.module or redis_server.module_path()
    with state.lock(data):
        record = state.load(data)
        shape = _shape(record, options, data)
        is_new = record is None
        has_moved = record is not None and record.port != shape.port
        missing = [node for node in shape.nodes if not node.running()]
        if has_moved and len(missing) < len(shape.nodes):
            raise SetupError(f"the cluster in {data} runs on other ports than {shape.port}..; stop it: shardqa down")
        used = [p for node in missing for p in (node.port, node.port + shape.bus_offset)]
        ports.check_free(used, "Redis and its cluster bus", "--port")
        try:
            state.save(data, shape)  # before a node writes: a folder with files and without this one is refused
            for node in missing:
                say(f"starting Redis on port {node.port}")
                node.process = redis_server.start(_config(node, shape, data, options, module), server)
                state.save(data, shape)
            _wait_until_loaded(data, shape, say)
            if is_new or not _is_formed(shape):
                say(f"forming a cluster of {shape.shards} masters and {shape.shards * shape.replicas} replicas")
                _form(shape)
            elif has_moved:
                _meet(shape)
            _wait_until_ok(data, shape)
        except BaseException:
            processes.stop([node.process for node in missing if node.process is not None])
            redis_server.reap()
            raise
    return LocalCluster(data, shape, tuple(missing))


def inspect(data: Path) -> ClusterState | None:
    """The recorded cluster of a data directory; None where there is none. Raises SetupError for foreign data."""
    return state.load(data.resolve()) if data.exists() else None


def stop(data: Path, nodes: tuple[NodeState, ...] | None = None) -> list[int]:
    """Stops the cluster's nodes (or only `nodes`); returns the ports of those that ran. Data stays.

    A full disk keeps the state as it was: it names processes by their start, too, so that no other is taken for them.
    """
    data = data.resolve()
    with state.lock(data):
        record = state.load(data)
        if record is None:
            return []
        targets = [n for n in record.nodes if nodes is None or n.process in [m.process for m in nodes]]
        running = [n for n in targets if n.running()]
        processes.stop([n.process for n in running if n.process is not None])
        redis_server.reap()
        for node in targets:
            node.process = None
        record.http = record.http if record.http_running() else None
        with suppress(OSError):
            state.save(data, record)
        return [n.port for n in running]


def record_http(data: Path, port: int, process: processes.ProcessId) -> None:
    """Notes the API process that serves this cluster, so that `down` can stop it."""
    data = data.resolve()
    with state.lock(data):
        cluster = state.load(data)
        assert cluster is not None, "an API is recorded only after its cluster"
        cluster.http_port, cluster.http = port, process
        state.save(data, cluster)


def _shape(old: ClusterState | None, options: ClusterOptions, data: Path) -> ClusterState:
    """Returns the cluster to run: that of the data directory, at the wanted ports; else a new one."""
    if old is None:
        shards = DEFAULT_SHARDS if options.shards is None else options.shards
        replicas = options.replicas or 0
    else:
        shards, replicas = old.shards, old.replicas
        for name, have, want in (("shards", shards, options.shards), ("replicas", replicas, options.replicas)):
            if want is not None and want != have:
                raise SetupError(
                    f"the cluster in {data} has {have} {name}, asked for {want}; leave --{name} out to run it, "
                    f"or make another with --data"
                )
    port = options.port if options.port is not None else (old.port if old else DEFAULT_PORT)
    count = shards * (1 + replicas)
    offset = options.bus_offset if options.bus_offset is not None else (old.bus_offset if old else None)
    if offset is None:
        offset = ports.bus_offset(range(port, port + count), DEFAULT_BUS_OFFSET)
    processes_by_folder = {node.folder: node.process for node in old.nodes} if old else {}
    nodes = [NodeState(f"node-{i}", port + i, processes_by_folder.get(f"node-{i}")) for i in range(count)]
    http = (old.http_port, old.http) if old else (None, None)
    return ClusterState(shards, replicas, port, offset, nodes, *http)


def _check_counts(options: ClusterOptions) -> None:
    shards = DEFAULT_SHARDS if options.shards is None else options.shards
    replicas = options.replicas or 0
    if shards < 1:
        raise SetupError(f"--shards {shards}: a cluster has at least 1 master")
    if replicas < 0:
        raise SetupError(f"--replicas {replicas}: a master has 0 or more replicas")
    if shards * (1 + replicas) > MAX_NODES:
        raise SetupError(f"{shards} shards with {replicas} replicas are more than {MAX_NODES} nodes; ask for fewer")


def _config(node: NodeState, shape: ClusterState, data: Path, options: ClusterOptions, module: Path) -> NodeConfig:
    return NodeConfig(
        folder=data / node.folder,
        port=node.port,
        bus_port=node.port + shape.bus_offset,
        module=module,
        threads=options.threads,
        extra=options.extra,
        module_arguments=(*(("MODELS", str(data / MODELS)) if options.share_models else ()), *options.module_arguments),
    )


def _wait_until_loaded(data: Path, shape: ClusterState, say: Say) -> None:
    """Waits until every node answers PING and has read its AOF: loading may take its time, a silent node may not."""
    said_loading = False
    for node in shape.nodes:
        deadline = time.monotonic() + READY_SECONDS
        while True:
            try:
                with talk.connected(node.port) as client:
                    client.ping()
                break
            except BusyLoadingError:
                deadline = time.monotonic() + READY_SECONDS
                if not said_loading:
                    say("loading data")
                    said_loading = True
            except RedisError:
                redis_server.reap()
            _check_running(data, node)
            _check_deadline(data, node, deadline, "does not answer")
            time.sleep(0.05)


def _check_running(data: Path, node: NodeState) -> None:
    if not node.running():
        raise SetupError(
            f"redis-server on port {node.port} ended; the last lines of {data / node.folder / redis_server.LOG}: "
            f"{redis_server.last_lines(data / node.folder)}"
        )


def _check_deadline(data: Path, node: NodeState, deadline: float, what: str) -> None:
    if time.monotonic() > deadline:
        log = data / node.folder / redis_server.LOG
        raise SetupError(f"the node on port {node.port} {what} after {READY_SECONDS:.0f} s; see {log}")


def _is_formed(shape: ClusterState) -> bool:
    """Returns whether all slots have nodes and all nodes have met: a run may have ended before that."""
    try:
        with talk.connected(shape.port) as client:
            nodes = topology.read(client)
    except BusyLoadingError:  # once more: it came back as a replica, whose master sends it all anew
        return True
    return len(nodes) == len(shape.nodes) and sum(n.slot_count() for n in nodes) == topology.SLOTS


def _form(shape: ClusterState) -> None:
    """Gives out slots and epochs, introduces the nodes, attaches replicas; each step can be taken twice."""
    masters = shape.nodes[: shape.shards]
    for i, (node, (first, last)) in enumerate(zip(masters, topology.even_ranges(shape.shards), strict=True)):
        with talk.connected(node.port) as client:
            mine = topology.myself(topology.read(client))
            if not mine.slots:
                talk.command(client, "CLUSTER", "ADDSLOTSRANGE", first, last)
                _set_epoch(client, i + 1)
    _meet(shape)
    _wait_for_everyone(shape)
    ids = {node.port: _id(node.port) for node in masters}
    for i, node in enumerate(shape.nodes[shape.shards :]):
        with talk.connected(node.port) as client:
            talk.command(client, "CLUSTER", "REPLICATE", ids[masters[i % shape.shards].port])


def _set_epoch(client: Redis, epoch: int) -> None:
    """Gives a node an epoch of its own, which spares a round of conflicts; one that met others keeps its own."""
    try:
        talk.command(client, "CLUSTER", "SET-CONFIG-EPOCH", epoch)
    except ResponseError as error:
        if "known" not in str(error) and "already" not in str(error):
            raise


def _id(port: int) -> str:
    with talk.connected(port) as client:
        return talk.text(client, "CLUSTER", "MYID")


def _meet(shape: ClusterState) -> None:
    """Introduces every node to every other. Gossip alone would spread a moved address only after a node timeout."""
    for node in shape.nodes:
        with talk.connected(node.port) as client:
            for other in shape.nodes:
                if other is not node:
                    talk.command(client, "CLUSTER", "MEET", ports.HOST, other.port, other.port + shape.bus_offset)


def _wait_for_everyone(shape: ClusterState) -> None:
    """Waits until each replica knows its master by id, as REPLICATE wants: gossip brings it a moment after MEET."""
    ids = {_id(node.port) for node in shape.nodes}
    deadline = time.monotonic() + READY_SECONDS
    for node in shape.nodes:
        while not ids <= _known_ids(node.port):
            if time.monotonic() > deadline:
                raise SetupError(f"the node on port {node.port} has not met all others after {READY_SECONDS:.0f} s")
            time.sleep(0.05)


def _known_ids(port: int) -> set[str]:
    with talk.connected(port) as client:
        return {n.id for n in topology.read(client)}


def _wait_until_ok(data: Path, shape: ClusterState) -> None:
    deadline = time.monotonic() + READY_SECONDS
    for node in shape.nodes:
        while (problem := _problem(node.port, shape)) is not None:
            redis_server.reap()
            _check_running(data, node)
            _check_deadline(data, node, deadline, problem)
            time.sleep(0.05)


def _problem(port: int, shape: ClusterState) -> str | None:
    """Names what the node still lacks: agreement, all slots, knowledge of every role, the link to its master."""
    try:
        state_of_cluster = _info(port).get("cluster_state")
        with talk.connected(port) as client:
            nodes = topology.read(client)
            replication = client.info("replication")
    except RedisError as error:
        return f"answers {error}"
    if state_of_cluster != "ok":
        return f"reports cluster_state:{state_of_cluster}"
    if len(nodes) != len(shape.nodes) or sum(n.slot_count() for n in nodes) != topology.SLOTS:
        return "does not see all slots and nodes"
    if sum(n.role == "replica" for n in nodes) != shape.shards * shape.replicas:
        return "does not see all replicas"
    if replication.get("role") == "slave" and replication.get("master_link_status") != "up":
        return "has no link to its master"
    return None


def _info(port: int) -> dict[str, str]:
    with talk.connected(port) as client:
        return talk.pairs(talk.text(client, "CLUSTER", "INFO"))
