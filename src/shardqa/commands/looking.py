"""`shardqa status`, `doctor`, `prepare` and `module-path`: what runs, what is wrong, what is missing."""

from dataclasses import asdict, dataclass
from typing import Annotated

import typer
from redis import Redis
from redis.exceptions import RedisError
from rich.text import Text

from shardqa import topology
from shardqa.cluster import doctor, redis_server, tags
from shardqa.commands.connection import (
    DEFAULT_DATA,
    DataOption,
    JsonOption,
    PasswordOption,
    RedisOption,
    UserOption,
    node_client,
    settings_of,
    with_engine,
)
from shardqa.commands.output import out, print_json, print_table, say
from shardqa.config import Settings
from shardqa.errors import ClusterUnavailable
from shardqa.loader import preparation
from shardqa.topology import Node

COLOURS = {"ok": "green", "warning": "yellow", "bad": "bold red", "unknown": "magenta"}
STORE_SECONDS = 120.0  # to store a reader on a shard whose worker still starts


@dataclass(frozen=True, slots=True)
class NodeStatus:
    node: str  # host:port
    role: str
    slots: int
    tag: str | None
    documents: int | None
    passages: int | None
    models: int | None
    worker: str
    memory: str
    hit_rate: str  # of the answers asked for: found against found and computed


def status(
    as_json: JsonOption = False,
    redis: RedisOption = None,
    user: UserOption = None,
    password: PasswordOption = None,
    data: DataOption = DEFAULT_DATA,
) -> None:
    """A table of the nodes: role, slots, passages, models, worker, memory, hit rate of answers.

    Example: shardqa status --redis 127.0.0.1:7000
    """
    settings = settings_of(redis, user, password)
    rows = [_node_status(node, settings) for node in _nodes(settings)]
    if as_json:
        print_json([asdict(row) for row in rows])
        return
    names = ["node", "role", "slots", "tag", "documents", "passages", "models", "worker", "memory", "hit rate"]
    print_table(names, [list(asdict(row).values()) for row in rows], f"cluster of {settings.redis}")
    if any(row.worker == "unreachable" for row in rows):
        raise typer.Exit(1)


def _nodes(settings: Settings) -> list[Node]:
    try:
        with node_client(settings, *settings.address) as client:
            return topology.read(client)
    except RedisError as error:
        raise ClusterUnavailable(
            f"no cluster at {settings.redis} ({error}); start one with 'shardqa up' or name a node with --redis"
        ) from error


def _node_status(node: Node, settings: Settings) -> NodeStatus:
    try:
        with node_client(settings, node.host, node.port) as client:
            return _reachable(node, client)
    except RedisError:
        return NodeStatus(node.address, node.role, node.slot_count(), None, None, None, None, "unreachable", "", "")


def _reachable(node: Node, client: Redis) -> NodeStatus:
    info = client.info("shardqa")
    told = tags.corpora_of_shard(client) if node.role == "master" and info else None
    corpora = told["corpora"].values() if told else []
    hits, misses = int(info.get("shardqa_hook_hits", 0)), int(info.get("shardqa_hook_misses", 0))
    return NodeStatus(
        node=node.address,
        role=node.role,
        slots=node.slot_count(),
        tag=told["tag"] if told else None,
        documents=sum(numbers["documents"] for numbers in corpora) if told else None,
        passages=sum(numbers["passages"] for numbers in corpora) if told else None,
        models=info.get("shardqa_models"),
        worker="indexing" if told and told.get("indexing") else str(info.get("shardqa_worker_state", "no module")),
        memory=str(client.info("memory").get("used_memory_human", "?")),
        hit_rate=f"{100 * hits / (hits + misses):.0f} % of {hits + misses}" if hits + misses else "-",
    )


def doctor_(
    as_json: JsonOption = False,
    redis: RedisOption = None,
    user: UserOption = None,
    password: PasswordOption = None,
) -> None:
    """Check this machine and the cluster; every fault comes with its way out. Fails when something is bad.

    Example: shardqa doctor --redis 10.0.0.5:7000 --user app --password s3cret
    """
    settings = settings_of(redis, user, password)
    findings = [
        *doctor.machine(),
        *doctor.cluster(
            settings.redis, lambda host, port: node_client(settings, host, port), settings.user, settings.model
        ),
    ]
    if as_json:
        print_json([asdict(finding) for finding in findings])
    else:
        for finding in findings:
            _print_finding(finding)
    if any(finding.verdict == "bad" for finding in findings):
        raise typer.Exit(1)


def _print_finding(finding: doctor.Finding) -> None:
    verdict = (f"{finding.verdict:<8}", COLOURS[finding.verdict])
    out.print(Text.assemble(verdict, f"{finding.place:<22} {finding.check}: {finding.found}"))
    if finding.verdict != "ok" and finding.way_out:
        out.print(Text(f"{'':<8}{'':<22} -> {finding.way_out}"))


def prepare(
    force: Annotated[bool, typer.Option("--force", help="Register the functions anew even where they are.")] = False,
    redis: RedisOption = None,
    user: UserOption = None,
    password: PasswordOption = None,
) -> None:
    """Register the functions and store the reader on every shard of a cluster whose nodes have the module.

    Example: shardqa prepare --redis 10.0.0.5:7000
    """
    settings = settings_of(redis, user, password, timeout=STORE_SECONDS)
    done = with_engine(settings, lambda engine: preparation.prepare(engine, force))
    say(f"functions registered on: {', '.join(done.registered) or 'none, they were there'}")
    say(f"reader {done.reader.name} stored on: {', '.join(done.stored) or 'none, it was there'}")


def module_path() -> None:
    """Print the path of the Redis module, for loadmodule.

    Example: redis-server --loadmodule "$(shardqa module-path)" PYTHON "$(which python3)"
    """
    print(redis_server.module_path())
