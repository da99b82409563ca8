"""A whole shardqa on this machine: cluster, functions, reader, API. Starting, waiting until ready, stopping.

Ownership: a Service stops the nodes and the API process that it started itself, and nothing else.
"""

import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from shardqa import extras
from shardqa.cli.connection import settings_of, with_engine
from shardqa.cli.output import counted
from shardqa.cluster import local, ports, processes, state
from shardqa.cluster.local import ClusterOptions, LocalCluster
from shardqa.cluster.processes import ProcessId, identify
from shardqa.errors import SetupError
from shardqa.loader import preparation

DEFAULT_HTTP_PORT = 8080
API_LOG = "api.log"
API_SECONDS = 60.0  # for the API process to import its libraries and reach the cluster
READY_TIMEOUT = 120.0  # seconds a single command may take while workers start and the reader is loaded

Say = Callable[[str], None]


@dataclass(slots=True)
class Service:
    cluster: LocalCluster
    http_port: int
    api: ProcessId
    _api_child: "subprocess.Popen[bytes] | None" = field(default=None)  # when this process started the API

    @property
    def page(self) -> str:
        return f"http://{ports.HOST}:{self.http_port}/"

    def api_running(self) -> bool:
        if self._api_child is not None:
            self._api_child.poll()  # reaps it
        return processes.alive(self.api)

    def stop(self) -> None:
        """Ends what this service started: the API first, then the nodes."""
        if self._api_child is not None:
            processes.stop([self.api])
            self._api_child.wait()
        local.stop(self.cluster.data, self.cluster.started)


def start(options: ClusterOptions, http_port: int | None, say: Say) -> Service:
    """Starts what does not run yet; returns when questions can be asked. Raises SetupError and other ShardqaErrors,
    after stopping what it had started."""
    extras.need(*extras.SERVICE, extra="all")
    running = local.inspect(options.data)
    port = http_port or (running.http_port if running and running.http_port else DEFAULT_HTTP_PORT)
    has_api = running is not None and running.http_running() and running.http_port == port
    if not has_api:
        ports.check_free([port], "the HTTP API", "--http")  # before anything is started that would have to be stopped
    cluster = local.start(options, say)
    try:
        prepare(cluster, say)
        wait_for_indexes(cluster, say)
        if has_api and running is not None and running.http is not None:
            return Service(cluster, port, running.http)
        return _with_api(cluster, port, say)
    except BaseException:
        local.stop(cluster.data, cluster.started)
        raise


def prepare(cluster: LocalCluster, say: Say) -> None:
    """Stores functions, reader and encoder on every shard that lacks them."""
    outcome = with_engine(settings_of(cluster.seed(), None, None, timeout=READY_TIMEOUT), preparation.prepare)
    if outcome.registered:
        say(f"registered the functions on {counted(len(outcome.registered), 'shard')}")
    if outcome.stored:
        megabytes = outcome.reader.file.size / 1e6
        say(f"stored the reader {outcome.reader.name} ({megabytes:.1f} MB) on {counted(len(outcome.stored), 'shard')}")
    if outcome.encoder_stored:
        nodes = counted(len(outcome.encoder_stored), "shard")
        say(f"stored the encoder on {nodes}; passages get vectors in the background")


def wait_for_indexes(cluster: LocalCluster, say: Say) -> None:
    """Waits until every passage is in an index: with hundreds of thousands, long after the nodes have started."""

    def tell(passages: int) -> None:
        say(f"the shards read their passages into their indexes, {passages:,} so far")

    with_engine(settings_of(cluster.seed(), None, None), lambda engine: preparation.wait_for_indexes(engine, tell))


def _with_api(cluster: LocalCluster, port: int, say: Say) -> Service:
    say(f"starting the API on port {port}")
    with open(cluster.data / API_LOG, "ab") as log:
        child = subprocess.Popen(
            [sys.executable, "-m", "shardqa.api"],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env={**os.environ, "SHARDQA_REDIS": cluster.seed(), "SHARDQA_HTTP_PORT": str(port)},
            start_new_session=True,
        )
    identity = identify(child.pid)
    if identity is None:
        raise _api_ended(cluster.data)
    try:
        local.record_http(cluster.data, port, identity)
        _wait_until_ready(cluster.data, port, child)
    except BaseException:
        processes.stop([identity])
        child.wait()
        raise
    return Service(cluster, port, identity, child)


def _wait_until_ready(data: Path, port: int, child: "subprocess.Popen[bytes]") -> None:
    deadline = time.monotonic() + API_SECONDS
    health = "nothing"
    while time.monotonic() < deadline:
        if child.poll() is not None:
            raise _api_ended(data)
        try:
            with urllib.request.urlopen(f"http://{ports.HOST}:{port}/readyz", timeout=5) as reply:
                if reply.status == 200:
                    return
        except urllib.error.HTTPError as error:
            health = error.read(2000).decode(errors="replace")
        except OSError as error:
            health = str(error)
        time.sleep(0.05)
    raise SetupError(f"the API on port {port} is not ready after {API_SECONDS:.0f} s; it says: {health}")


def _api_ended(data: Path) -> SetupError:
    log = data / API_LOG
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()[-3:]
    return SetupError(f"the API ended at once; the last lines of {log}: {' / '.join(lines)}")


def stop_all(data: Path) -> tuple[list[int], int | None]:
    """Stops the recorded cluster and its API; returns the ports of the nodes and of the API that ran."""
    record = local.inspect(data)
    http = None
    if record is not None and record.http is not None and record.http_running():
        processes.stop([record.http])
        http = record.http_port
    return local.stop(data) if record is not None else [], http


def describe(cluster: state.ClusterState) -> str:
    running = [str(n.port) for n in cluster.nodes if n.running()]
    return f"{len(running)} of {len(cluster.nodes)} nodes run" + (f" (ports {', '.join(running)})" if running else "")
