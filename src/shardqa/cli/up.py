"""`shardqa up` and `down`: the cluster of this machine."""

from collections.abc import Callable
from typing import Annotated, Any

import typer

from shardqa.cli import foreground, service
from shardqa.cli.connection import DEFAULT_DATA
from shardqa.cli.options import DataOption, JsonOption
from shardqa.cli.output import report, say
from shardqa.cluster.local import ClusterOptions

ShardsOption = Annotated[int | None, typer.Option("--shards", help="Masters; 3 for a new cluster.", show_default=False)]
ReplicasOption = Annotated[int | None, typer.Option("--replicas", help="Replicas of each master.", show_default=False)]
PortOption = Annotated[
    int | None,
    typer.Option("--port", help="Port of the first node, others follow; 7000 for a new cluster.", show_default=False),
]
HttpOption = Annotated[
    int | None, typer.Option("--http", metavar="PORT", help="Port of API and page; 8080 at first.", show_default=False)
]
ThreadsOption = Annotated[int, typer.Option("--threads", min=1, max=256, help="Rows that a shard reads at once.")]
ShareModelsOption = Annotated[
    bool,
    typer.Option(
        "--share-models",
        envvar="SHARDQA_SHARE_MODELS",
        help="Keep models of 64 MiB or more in one file for all nodes, in DATA/models.",
    ),
]


def up(
    shards: ShardsOption = None,
    replicas: ReplicasOption = None,
    port: PortOption = None,
    http: HttpOption = None,
    data: DataOption = DEFAULT_DATA,
    threads: ThreadsOption = 1,
    share_models: ShareModelsOption = False,
    detach: Annotated[bool, typer.Option("--detach", help="Return when ready; 'shardqa down' stops it.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Start a cluster with functions, reader and API on this machine.

    Stays in the foreground and shows the logs; Ctrl-C stops what it started. The data is kept in --data.

    Example: shardqa up --shards 3 --replicas 1 --port 7000 --http 8080
    """
    options = ClusterOptions(data, shards, replicas, port, threads, share_models)

    def when_ready(running: service.Service) -> None:
        line = f"ready: Redis Cluster at {running.cluster.seed()}, page and API at {running.page}"
        report(as_json, described(running), line)

    if detach:
        when_ready(service.start(options, http, say))
    else:
        run(options, http, when_ready)


def down(data: DataOption = DEFAULT_DATA, as_json: JsonOption = False) -> None:
    """Stop the cluster and the API that run from --data. The data stays.

    Example: shardqa down
    """
    nodes, http = service.stop_all(data)
    lines = [f"stopped the API on port {http}"] if http is not None else []
    lines += [f"stopped the nodes on ports {', '.join(map(str, nodes))}"] if nodes else []
    report(as_json, {"data": str(data), "nodes": nodes, "http": http}, *(lines or [f"nothing runs from {data}"]))


def run(options: ClusterOptions, http: int | None, when_ready: Callable[[service.Service], None]) -> None:
    """Starts a service, calls `when_ready`, and shows logs until a signal; then stops the service."""
    running: service.Service | None = None
    with foreground.stopping_signals():
        try:
            running = service.start(options, http, say)
            tails = foreground.tails_of(running)
            when_ready(running)
            foreground.watch(running, tails)
        except foreground.Stopped:
            say("stopping")
        finally:
            if running is not None:
                running.stop()


def described(running: service.Service) -> dict[str, Any]:
    cluster = running.cluster
    nodes = [{"port": node.port, "folder": str(cluster.data / node.folder)} for node in cluster.state.nodes]
    return {"redis": cluster.seed(), "page": running.page, "data": str(cluster.data), "nodes": nodes}
