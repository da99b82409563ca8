"""Nodes with the module whose worker is a fake one (fake_worker.py): what tests of the module itself start."""

import json
import os
import shlex
import signal
import socket
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.nodes import Node, free_port, wait_until

__all__ = ["MODULE", "ROOT", "Make", "Server", "command", "free_port", "in_sync", "replicate", "until"]

ROOT = Path(__file__).resolve().parents[2]
# To hunt memory errors: make -C module sanitized, then
# SHARDQA_MODULE=module/build/shardqa-asan.so SHARDQA_PRELOAD=$(gcc -print-file-name=libasan.so) pytest tests/module
MODULE = Path(os.environ.get("SHARDQA_MODULE", ROOT / "module" / "shardqa.so")).resolve()
PRELOAD = os.environ.get("SHARDQA_PRELOAD", "")
FAKE = Path(__file__).with_name("fake_worker.py")
CONFIGURATION = """
appendfsync no
shutdown-timeout 2
enable-debug-command local
enable-module-command local
maxmemory-policy noeviction
"""


def until(condition: Callable[[], Any], seconds: float = 30.0) -> Any:
    return wait_until(condition, seconds=seconds)


def command(*words: Any) -> bytes:
    """RESP of a command."""
    raw = [w if isinstance(w, bytes) else str(w).encode() for w in words]
    return b"*%d\r\n" % len(raw) + b"".join(b"$%d\r\n%b\r\n" % (len(r), r) for r in raw)


class Server(Node):
    """A node with a fake worker, or none. `options` are lines of redis.conf, `arguments` those of the module."""

    def __init__(
        self,
        folder: Path,
        *options: str,
        arguments: str = "",
        worker: bool = True,
        module: Path | None = MODULE,
        cluster: bool = False,
        preload: str = PRELOAD,
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        lines = (*CONFIGURATION.split("\n"), *options)
        super().__init__(
            folder,
            environment=self._environment(folder, preload),
            module=module,
            cluster=cluster,
            extra=tuple(tuple(words) for line in lines if (words := shlex.split(line))),
        )
        self.worker = worker
        self.arguments = arguments
        self.name = "shardqa"
        self.connections: list[Any] = []
        wrapper = folder / "python"
        wrapper.write_text(f"#!/bin/sh\nexec {sys.executable} -I {FAKE}\n")
        wrapper.chmod(0o755)

    def _environment(self, folder: Path, preload: str) -> dict[str, str]:
        environment = dict(os.environ)
        if preload:
            environment |= {
                "LD_PRELOAD": preload,
                "ASAN_OPTIONS": f"detect_leaks=0,allocator_may_return_null=1,log_path={folder / 'asan'}",
            }
        return environment

    def start_named(self, name: str) -> "Server":
        """Starts it with a module that has NAME: its fields of INFO begin with that."""
        self.name = name
        return self.start()

    def launch(self) -> None:
        python = self.folder / "python" if self.worker else Path("none")
        self.config = replace(self.config, python=python, module_arguments=tuple(shlex.split(self.arguments)))
        super().launch()

    def ready(self) -> bool:
        return super().ready() and (not self.worker or self.info()["worker_state"] == "ready")

    def client(self, **options: Any) -> Any:
        """RESP2 unless told otherwise."""
        return super().client(**{"protocol": 2, "socket_timeout": 60, **options})

    def error(self, *words: Any, login: tuple[str, str] | None = None) -> str:
        """The error line that a command gets, exactly as sent (clients cut its first word off)."""
        with socket.create_connection(("127.0.0.1", self.port), 15) as connection:
            if login:
                connection.sendall(command("AUTH", *login))
                assert connection.recv(100) == b"+OK\r\n"
            connection.sendall(command(*words))
            line = connection.makefile("rb").readline().decode().rstrip()
        assert line.startswith("-"), f"no error but {line}"
        return line[1:]

    def info(self) -> dict[str, Any]:
        found = self.client().info(self.name)
        return {name.removeprefix(f"{self.name}_"): value for name, value in found.items()}

    def send(self, *words: Any, **options: Any) -> Any:
        """Sends a command and returns its connection, which stays open; nobody reads the reply yet."""
        connection = self.client(**options).connection_pool.get_connection()
        connection.send_command(*words)
        self.connections.append(connection)
        return connection

    def waiting(self, count: int) -> None:
        until(lambda: self.info()["waiting_clients"] == count)

    def replaced(self, pid: int) -> None:
        """Waits for a worker other than this one."""
        until(lambda: (info := self.info())["worker_state"] == "ready" and info["worker_pid"] not in (0, pid))

    def restarted(self, count: int) -> None:
        """Waits until so many workers have followed the first."""
        until(lambda: (info := self.info())["worker_restarts"] == count and info["worker_state"] == "ready", 40)

    def rewrite(self) -> None:
        """Waits until the append only file is rewritten."""
        self.client().bgrewriteaof()
        until(lambda: not self.client().info("persistence")["aof_rewrite_in_progress"])

    def order(self, verb: str, *words: Any) -> Any:
        return self.client().execute_command("RG.TRIGGER", verb, *words)

    def seen(self, name: str = "") -> list[list[str]]:
        frames = json.loads(self.order("seen"))
        return [f for f in frames if name in ("", f[0])]

    def call(self, *commands: list[str], user: str = "default", context: str = "", check: bool = False) -> bytes:
        """Commands run by the worker in one frame, for `user`: their replies as raw bytes."""
        client = self.client(username=user, password="x") if user != "default" else self.client()
        words = (json.dumps(commands), context, str(int(check)))
        return bytes(client.execute_command("RG.TRIGGER", "call", *words))

    def register(self, session: str, *registrations: list[Any]) -> None:
        words = ("RG.PYEXECUTE", "register", session, json.dumps(registrations))
        assert self.client().execute_command(*words) == b"OK"

    def hook(self, prefix: str = "answer:*", mode: str = "answer", session: str = "hooks") -> None:
        self.register(session, [f"{session}-1", "KeysReader", prefix, "", ["keymiss"], [], ["get r 1 1"]])
        self.order("misses", mode)

    def worker_pid(self) -> int:
        return int(self.info()["worker_pid"])

    def kill_worker(self) -> None:
        os.kill(until(self.worker_pid), signal.SIGKILL)  # between two there is none: 0, our own process group

    def block(self) -> None:
        """The worker keeps its next late answer (see fake_worker.py) until `unblock`."""
        (self.folder / "blocked").touch()

    def unblock(self) -> None:
        (self.folder / "blocked").unlink()

    def aof(self) -> bytes:
        return b"".join(p.read_bytes() for p in sorted((self.folder / "appendonlydir").glob("*.incr.aof")))


Make = Callable[..., Server]


def replicate(make: Make, master: Server, *options: str) -> Server:
    replica = make(f"replicaof 127.0.0.1 {master.port}", *options)
    until(lambda: replica.client().info("replication")["master_link_status"] == "up")
    return replica


def in_sync(master: Server, replica: Server) -> None:
    """Waits until the replica has applied all that the master did."""

    def equal() -> bool:
        offset = master.client().info("replication")["master_repl_offset"]
        return bool(replica.client().info("replication")["slave_repl_offset"] >= offset)

    until(equal)
