"""A real redis-server with the module and an append only file; the worker is a fake one (fake_worker.py)."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import redis

from shardqa.cluster import ports, redis_server

ROOT = Path(__file__).resolve().parents[2]
# To hunt memory errors: make -C module sanitized, then
# SHARDQA_MODULE=module/build/shardqa-asan.so SHARDQA_PRELOAD=$(gcc -print-file-name=libasan.so) pytest tests/module
MODULE = Path(os.environ.get("SHARDQA_MODULE", ROOT / "module" / "shardqa.so")).resolve()
PRELOAD = os.environ.get("SHARDQA_PRELOAD", "")
SERVER = str(redis_server.find_server())
FAKE = Path(__file__).with_name("fake_worker.py")


def free_port() -> int:
    """One whose cluster bus port, 10,000 above, is free too: a cluster node takes no port above 55535."""
    return ports.random_block(1, 10_000)


def until(condition: Callable[[], Any], seconds: float = 10.0) -> Any:
    """Waits for a truthy value; connection errors count as false."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            value = condition()
        except (redis.ConnectionError, redis.TimeoutError, redis.exceptions.ResponseError):
            value = None
        if value:
            return value
        assert time.monotonic() < deadline, "the awaited state did not come"
        time.sleep(0.01)


def command(*words: Any) -> bytes:
    """RESP of a command."""
    raw = [w if isinstance(w, bytes) else str(w).encode() for w in words]
    return b"*%d\r\n" % len(raw) + b"".join(b"$%d\r\n%b\r\n" % (len(r), r) for r in raw)


class Server:
    """One redis-server process in a folder of its own. `options` are lines of redis.conf."""

    def __init__(self, folder: Path, *options: str, arguments: str = "", worker: bool = True) -> None:
        self.folder = folder
        self.port = free_port()
        self.options = options
        self.arguments = arguments
        self.worker = worker
        self.name = "shardqa"
        self.process: subprocess.Popen[bytes] | None = None
        folder.mkdir(parents=True, exist_ok=True)
        wrapper = folder / "python"
        wrapper.write_text(f"#!/bin/sh\nexec {sys.executable} -I {FAKE}\n")
        wrapper.chmod(0o755)

    def environment(self) -> dict[str, str]:
        environment = dict(os.environ)
        if PRELOAD:
            environment |= {
                "LD_PRELOAD": PRELOAD,
                "ASAN_OPTIONS": f"detect_leaks=0,allocator_may_return_null=1,log_path={self.folder / 'asan'}",
            }
        return environment

    @property
    def log(self) -> str:
        path = self.folder / "log"
        return path.read_text(errors="replace") if path.exists() else ""

    def start(self, *, wait: bool = True) -> "Server":
        """The port may be taken between our look and the start: then another one is tried."""
        for _ in range(5):
            self.launch()
            if not wait:
                return self
            try:
                self.wait()
                return self
            except AssertionError:
                if "Address already in use" not in self.log:
                    raise
                (self.folder / "log").unlink()
                self.port = free_port()
        raise AssertionError("no free port")

    def launch(self) -> None:
        module = f"loadmodule {MODULE} PYTHON {self.folder / 'python' if self.worker else 'none'}"
        lines = [
            f"port {self.port}",
            f"dir {self.folder}",
            "logfile log",
            "save ''",
            "appendonly yes",
            "appendfsync no",
            "shutdown-timeout 2",
            "repl-diskless-sync-delay 0",
            "enable-debug-command local",
            "enable-module-command local",
            *self.options,
            f"{module} {self.arguments}".strip(),
        ]
        (self.folder / "redis.conf").write_text("\n".join(lines) + "\n")
        config = str(self.folder / "redis.conf")
        self.process = subprocess.Popen([SERVER, config], cwd=self.folder, env=self.environment())

    def start_named(self, name: str) -> "Server":
        """The same for a module that was loaded with NAME: its fields of INFO begin with that."""
        self.name = name
        return self.start()

    def wait(self) -> None:
        client = self.client()
        until(lambda: self.alive() and client.ping())
        if self.worker:
            until(lambda: self.info()["worker_state"] == "ready")

    def alive(self) -> bool:
        assert self.process is not None
        assert self.process.poll() is None, f"redis-server ended:\n{self.log[-3000:]}"
        return True

    def client(self, **options: Any) -> Any:
        """A redis-py client (Any: its types promise None and awaitables everywhere). RESP2 unless told otherwise."""
        return redis.Redis(port=self.port, socket_timeout=15, **{"protocol": 2, **options})

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
        self.register(session, [f"{session}-1", "KeysReader", prefix, "", ["keymiss"], [], ["get"]])
        self.order("misses", mode)

    def worker_pid(self) -> int:
        return int(self.info()["worker_pid"])

    def kill_worker(self) -> None:
        pid = self.worker_pid()
        assert pid > 0  # 0 would be our own process group
        os.kill(pid, signal.SIGKILL)

    def block(self) -> None:
        """The worker keeps its next late answer (see fake_worker.py) until `unblock`."""
        (self.folder / "blocked").touch()

    def unblock(self) -> None:
        (self.folder / "blocked").unlink()

    def aof(self) -> bytes:
        return b"".join(p.read_bytes() for p in sorted((self.folder / "appendonlydir").glob("*.incr.aof")))

    def stop(self, how: int = signal.SIGTERM) -> None:
        if self.process is None or self.process.poll() is not None:
            return
        for _ in range(10):  # a replica that writes its first AOF refuses to stop
            self.process.send_signal(how)
            self.process.send_signal(signal.SIGCONT)  # a test may have stopped it
            try:
                self.process.wait(1)
                return
            except subprocess.TimeoutExpired:
                continue
        self.process.kill()
        self.process.wait(10)

    def restart(self, how: int = signal.SIGTERM) -> None:
        self.stop(how)
        self.start()


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
