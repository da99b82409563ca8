"""`shardqa status`: a table of the nodes and what they hold."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from functools import partial

import typer
from redis import Redis
from redis.exceptions import RedisError, TimeoutError

from shardqa import topology
from shardqa.cli.connection import DEFAULT_DATA, node_client, seed_of
from shardqa.cli.options import DataOption, JsonOption, Target, on_cluster
from shardqa.cli.output import PARTLY, out, print_records, print_table
from shardqa.cluster import tags
from shardqa.config import Settings
from shardqa.description import CorporaOfShard, StreamProgress
from shardqa.errors import ClusterUnavailable
from shardqa.topology import Node

NODE_SECONDS = 1.5  # seconds one node may take for one command: the table is there within two or so


@dataclass(frozen=True, slots=True)
class NodeStatus:
    node: str  # host:port
    role: str
    slots: int
    tag: str | None
    documents: int | None
    passages: int | None
    encoded: int | None  # passages with a vector, of those that are to have one
    models: int | None
    worker: str
    writes: str  # taken, or why Redis refuses them
    memory: str
    streams: str  # entries of `ingest:` streams: waiting, done, put aside
    hit_rate: str  # of the answers asked for: found against found and computed


@on_cluster
def status(target: Target, as_json: JsonOption = False, data: DataOption = DEFAULT_DATA) -> None:
    """A table of the nodes: role, slots, passages, vectors, models, worker, writes, memory, streams, answers found.

    Example: shardqa status --redis 127.0.0.1:7000
    """
    settings = target.settings()
    nodes = _nodes(settings)
    with ThreadPoolExecutor(len(nodes) or 1) as threads:  # a node that hangs keeps nobody else waiting
        rows = list(threads.map(partial(_node_status, settings=settings), nodes))
    if as_json or not out.is_terminal:
        print_records(rows, as_json)
    else:
        _show(rows, f"cluster of {settings.redis}")
    if any(row.worker == "unreachable" for row in rows):
        raise typer.Exit(PARTLY)


def _show(rows: list[NodeStatus], title: str) -> None:
    """Prints a table that fits 100 columns; faults of writes and streams stand below it."""
    below = ("writes", "streams")
    records = [{name: value for name, value in asdict(row).items() if name not in below} for row in rows]
    columns = [name.replace("_", " ") for name in records[0]]
    print_table(columns, [list(record.values()) for record in records], title)
    for row in rows:
        if row.writes not in ("", "-", "taken"):
            out.print(f"{row.node}: writes: {row.writes}", markup=False)
        if row.streams not in ("", "-"):
            out.print(f"{row.node}: streams: {row.streams}", markup=False)


def _nodes(settings: Settings) -> list[Node]:
    host, _, port = seed_of(settings).rpartition(":")
    try:
        with node_client(settings, host, int(port), NODE_SECONDS) as client:
            return topology.read(client)
    except RedisError as error:
        raise ClusterUnavailable(
            f"no cluster at {settings.redis} ({error}); start one with 'shardqa up' or name a node with --redis"
        ) from error


def _node_status(node: Node, settings: Settings) -> NodeStatus:
    try:
        with node_client(settings, node.host, node.port, NODE_SECONDS) as client:
            return _reachable(node, client)
    except RedisError:
        return NodeStatus(
            node.address, node.role, node.slot_count(), None, None, None, None, None, "unreachable", "", "", "", ""
        )


def _reachable(node: Node, client: Redis) -> NodeStatus:
    info = client.info("shardqa")
    own, streams, worker = None, None, str(info.get("shardqa_worker_state", "no module"))
    if node.role == "master" and info:
        try:
            own = tags.corpora(client)
            streams = tags.streams(client)
        except TimeoutError:
            worker = "busy"
    corpora = own.corpora.values() if own else []
    hits, misses = int(info.get("shardqa_hook_hits", 0)), int(info.get("shardqa_hook_misses", 0))
    return NodeStatus(
        node=node.address,
        role=node.role,
        slots=node.slot_count(),
        tag=own.shard.tag if own else None,
        documents=sum(part.documents for part in corpora) if own else None,
        passages=sum(part.passages for part in corpora) if own else None,
        encoded=_encoded(own),
        models=info.get("shardqa_models"),
        worker="indexing" if own and own.shard.indexing else worker,
        writes=(own.shard.refuses or "taken") if own else "-",
        memory=str(client.info("memory").get("used_memory_human", "?")),
        streams=_streams(streams),
        hit_rate=f"{100 * hits / (hits + misses):.0f} % of {hits + misses}" if hits + misses else "-",
    )


def _streams(progress: StreamProgress | None) -> str:
    if progress is None or not (progress.waiting or progress.done or progress.failed):
        return "-"
    return f"{progress.waiting} waiting, {progress.done} done, {progress.failed} failed"


def _encoded(own: CorporaOfShard | None) -> int | None:
    parts = [part.encoded for part in own.corpora.values() if part.encoded is not None] if own else []
    return sum(parts) if parts else None
