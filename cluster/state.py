"""The state file of a local cluster's data directory: layout version, shape, ports, and the processes that run it.

The file is written by rename, so it is whole or the one before; a lock on the directory keeps two commands apart.
"""

import contextlib
import fcntl
import json
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path

from shardqa.cluster.processes import ProcessId, alive
from shardqa.errors import SetupError

LAYOUT = 1  # version of the data directory; raise it when files or keys change so that old data can't be read
STATE = "cluster.json"
LOCK = "lock"


@dataclass(slots=True)
class NodeState:
    folder: str  # inside the data directory
    port: int
    process: ProcessId | None = None

    def running(self) -> bool:
        return self.process is not None and alive(self.process)


@dataclass(slots=True)
class ClusterState:
    shards: int  # masters
    replicas: int  # of each master
    port: int  # of the first node; the others follow
    bus_offset: int  # bus port = port + this
    nodes: list[NodeState] = field(default_factory=list)  # masters first, then replicas in rounds
    http_port: int | None = None  # of the API, where one was started
    http: ProcessId | None = None
    layout: int = LAYOUT

    def http_running(self) -> bool:
        return self.http is not None and alive(self.http)


def load(data: Path) -> ClusterState | None:
    """Returns the state in `data`; None where no cluster was made yet. Raises SetupError for another version's data."""
    path = data / STATE
    try:
        raw = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        if data.is_dir() and any(p.name != LOCK for p in data.iterdir()):
            raise SetupError(f"{data} is not empty and holds no {STATE}; use another --data, or empty it") from None
        return None
    except (ValueError, OSError) as error:
        raise SetupError(f"{path} can't be read ({error}); move {data} away, or use another --data") from error
    layout = raw.get("layout") if isinstance(raw, dict) else None
    if layout != LAYOUT:
        raise SetupError(
            f"{data} was made by another version (data layout {layout}, this version reads {LAYOUT}); "
            "choose another folder with --data and ingest again, or run the version that made it"
        )
    return _parse(raw, data)


def _parse(raw: dict[str, object], data: Path) -> ClusterState:
    try:
        return ClusterState(
            shards=int(str(raw["shards"])),
            replicas=int(str(raw["replicas"])),
            port=int(str(raw["port"])),
            bus_offset=int(str(raw["bus_offset"])),
            nodes=[NodeState(n["folder"], n["port"], _process(n["process"])) for n in raw["nodes"]],  # type: ignore[attr-defined]
            http_port=raw["http_port"],  # type: ignore[arg-type]
            http=_process(raw["http"]),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise SetupError(f"{data / STATE} is damaged ({error!r}); move {data} away, or use another --data") from error


def _process(raw: object) -> ProcessId | None:
    return ProcessId(raw["pid"], raw["started"]) if isinstance(raw, dict) else None


def save(data: Path, state: ClusterState) -> None:
    temporary = data / f"{STATE}.new"
    temporary.write_text(json.dumps(asdict(state), indent=1) + "\n", encoding="utf-8")
    os.replace(temporary, data / STATE)


@contextlib.contextmanager
def lock(data: Path) -> Iterator[None]:
    """Holds the data directory for one command. Raises SetupError when another command has it, or it can't be made."""
    try:
        data.mkdir(parents=True, exist_ok=True)
        fd = os.open(data / LOCK, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise SetupError(f"{data} can't be used: {error.strerror}; choose a folder of yours with --data") from error
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(fd)
        raise SetupError(f"another shardqa command works on the cluster in {data}; wait for it to end") from None
    try:
        yield
    finally:
        os.close(fd)
