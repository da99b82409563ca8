"""One redis-server process: finds the program, writes its configuration, starts it."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from shardqa.cluster.processes import ProcessId, identify
from shardqa.errors import SetupError

WANTED = (7, 0, 0)  # first Redis whose module API has what the module uses
INSTALL = "install it with 'apt-get install redis-server' (Debian 12, Ubuntu 22.10 or later), or from https://redis.io"
NODE_TIMEOUT_MS = 5000  # cluster-node-timeout: a failover after about this long; shorter ones mistake load for death
LOG = "redis.log"
CONFIG = "redis.conf"


@dataclass(frozen=True, slots=True)
class NodeConfig:
    folder: Path  # data directory of this node
    port: int
    bus_port: int
    module: Path | None  # shardqa.so; None: a plain Redis
    python: Path = Path(sys.executable)  # interpreter of the worker; not resolved: a venv's link matters
    threads: int = 1  # runs of one model at once, of one thread each: faster than one run of many threads
    cluster: bool = True
    replica_of: int | None = None  # port of the master, outside cluster mode
    extra: tuple[tuple[str, ...], ...] = ()  # further configuration lines
    module_arguments: tuple[str, ...] = ()  # further arguments of the module


def module_path() -> Path:
    """Returns the path of the built module. Raises SetupError where it has not been built."""
    import shardqa

    package = Path(shardqa.__file__).resolve().parent
    path = package / "module" / "shardqa.so"
    if not path.exists():
        raise SetupError(f"the module {path.resolve()} has not been built; run 'make build' (it needs gcc and make)")
    return path.resolve()


def find_server() -> Path:
    """Returns this machine's redis-server, else its valkey-server; SHARDQA_REDIS_SERVER names another.

    Raises SetupError where there is none, or one before 7.0.
    """
    server = (
        os.environ.get("SHARDQA_REDIS_SERVER") or shutil.which("redis-server") or shutil.which("valkey-server") or ""
    )
    if not server or not os.access(server, os.X_OK):
        raise SetupError(f"no redis-server {f'at {server}' if server else 'in PATH'}; {INSTALL}")
    version = server_version(Path(server))
    if version < WANTED:
        numbers = ".".join(map(str, version))
        raise SetupError(f"{server} is Redis {numbers}, wanted at least {'.'.join(map(str, WANTED))}; {INSTALL}")
    return Path(server)


def server_version(server: Path) -> tuple[int, ...]:
    output = subprocess.run([str(server), "--version"], capture_output=True, text=True, check=False).stdout
    match = re.search(r"v=(\d+)\.(\d+)\.(\d+)", output)
    if match is None:
        raise SetupError(f"{server} --version said {output[:80]!r}, which names no version; {INSTALL}")
    return tuple(map(int, match.groups()))


def start(config: NodeConfig, server: Path) -> ProcessId:
    """Starts the node in a session of its own (a terminal's Ctrl-C does not reach it) and returns at once."""
    process = spawn(config, server)
    identity = identify(process.pid)
    if identity is None:
        process.wait()
        log = last_lines(config.folder)
        raise SetupError(f"redis-server on port {config.port} ended at once; its log says: {log}")
    reap()
    _started.append(process)
    return identity


def spawn(config: NodeConfig, server: Path, environment: Mapping[str, str] | None = None) -> "subprocess.Popen[bytes]":
    """Starts the node; the caller reaps its process. `environment`: None for that of this process."""
    config.folder.mkdir(parents=True, exist_ok=True)
    path = config.folder / CONFIG
    path.write_text(configuration(config), encoding="utf-8")
    with open(config.folder / LOG, "ab") as log:
        return subprocess.Popen(
            [str(server), str(path)],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd=config.folder,
            env=environment,
            start_new_session=True,
        )


_started: list[subprocess.Popen[bytes]] = []  # kept so that poll() can reap them; a zombie holds its pid


def reap() -> None:
    """Collects the exit codes of nodes of this process that have ended."""
    _started[:] = [p for p in _started if p.poll() is None]


def last_lines(folder: Path) -> str:
    try:
        lines = (folder / LOG).read_text(encoding="utf-8", errors="replace").splitlines()
    except FileNotFoundError:
        return f"nothing ({folder / LOG} is missing)"
    return " / ".join(line.strip() for line in lines[-3:]) or "nothing"


def configuration(config: NodeConfig) -> str:
    lines: list[tuple[str, ...]] = [
        ("port", str(config.port)),
        ("bind", "127.0.0.1"),
        ("protected-mode", "yes"),
        ("daemonize", "no"),
        ("dir", str(config.folder)),
        ("appendonly", "yes"),
        ("appendfsync", "everysec"),
        ("save", ""),  # the AOF has everything; a second copy would double the writing
        ("maxmemory-policy", "volatile-lru"),  # once somebody sets maxmemory: answers go, documents stay
        ("repl-diskless-sync-delay", "0"),  # replicas of a local cluster come all at once anyway
    ]
    if config.cluster:
        lines += [
            ("cluster-enabled", "yes"),
            ("cluster-port", str(config.bus_port)),
            ("cluster-config-file", "nodes.conf"),
            ("cluster-node-timeout", str(NODE_TIMEOUT_MS)),
            ("cluster-require-full-coverage", "no"),  # the shards that live keep answering
        ]
    if config.replica_of is not None:
        lines.append(("replicaof", "127.0.0.1", str(config.replica_of)))
    lines += config.extra
    if config.module is not None:
        arguments = ("PYTHON", str(config.python), "THREADS_PER_QUEUE", str(config.threads), *config.module_arguments)
        lines.append(("loadmodule", str(config.module), *arguments))
    return "".join(" ".join([name, *map(quote, values)]) + "\n" for name, *values in lines)


def quote(value: str) -> str:
    """Quotes a value for redis.conf, whatever characters it holds."""
    if value and re.fullmatch(r"[A-Za-z0-9_./:@%+,*&>~|!-]+", value):
        return value
    text = "".join(f"\\x{b:02x}" if b < 0x20 or b in b'"\\' or b > 0x7E else chr(b) for b in value.encode())
    return f'"{text}"'
