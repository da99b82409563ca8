"""Birth and death of a worker: it leaves with its Redis and never before."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable

import pytest

from shardqa.worker import frames
from shardqa.worker.frames import Type
from tests.unit.worker_client import WorkerClient


def test_the_worker_leaves_with_status_0_when_the_socket_ends(start_worker: Callable[..., WorkerClient]) -> None:
    worker = start_worker()
    assert worker.close() == 0


def test_it_leaves_also_while_a_function_loops(start_worker: Callable[..., WorkerClient]) -> None:
    worker = start_worker()
    worker.ask(Type.REQUEST, "default", "RG.PYEXECUTE", "log('looping')\nwhile True: pass")
    worker.wait_log("looping")
    assert worker.close() == 0


def test_ready_tells_protocol_pid_and_versions(start_worker: Callable[..., WorkerClient]) -> None:
    worker = start_worker(started=False)
    protocol, pid, python, *backends = worker.start()
    assert (int(protocol), int(pid)) == (frames.VERSION, worker.pid)
    assert python.decode() == ".".join(map(str, sys.version_info[:3]))
    assert backends[0].startswith(b"onnxruntime=")


def model_load(*batching: bytes, backend: bytes = b"ONNX", device: bytes = b"CPU") -> bytes:
    none = frames.pack([])
    numbers = batching or (b"0", b"0", b"0")
    return frames.pack([b"1", backend, device, b"", *numbers, b"m", none, none, none, b"", b"file"])


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signals_of_a_service_manager_are_ignored(start_worker: Callable[..., WorkerClient], number: int) -> None:
    worker = start_worker()
    os.kill(worker.pid, number)
    assert worker.execute("") == b"OK"


@pytest.mark.parametrize(
    ("garbage", "reason"),
    [
        (b"\xff" * 64, "version 65535"),
        (frames.HEADER.pack(4, Type.SESSION, 0, frames.VERSION, 7) + b"\xff\xff\xff\xff", ""),
        (frames.HEADER.pack(0, Type.READY, 0, frames.VERSION, 7), "READY is not for the worker"),
        (frames.encode(Type.CALLED, 12345, b"+OK\r\n"), "unknown call 12345"),
        (frames.encode(Type.EVENT, 0, frames.pack([b"too", b"few"])), ""),
    ],
)
def test_a_malformed_frame_ends_the_worker_with_the_reason(
    start_worker: Callable[..., WorkerClient], garbage: bytes, reason: str
) -> None:
    worker = start_worker()
    worker._socket.sendall(garbage)
    assert worker.leave() == 1
    assert reason in worker.log.read_text()


@pytest.mark.parametrize(
    ("kind", "payload"),
    [
        (Type.REQUEST, b"\xff\xff\xff\xff"),
        (Type.REQUEST, frames.pack([b"default"])),
        (Type.MISS, frames.pack([b"default", b"id"])),
        (Type.EXECUTE, frames.pack([b"no head"])),
        (Type.EXECUTE, frames.pack([b"1 0 1 FLOAT 2", b"too", b"many"])),
        (Type.MODELLOAD, frames.pack([b"1", b"ONNX"])),
        (Type.MODELLOAD, model_load(device=b"CP\xff")),
        (Type.MODELLOAD, model_load(backend=b"ON\xff")),
        (Type.MODELLOAD, model_load(b"8", b"2", b"%d" % (1 << 62))),
        (Type.MODELLOAD, model_load(b"x", b"2", b"0")),
    ],
)
def test_a_bad_frame_that_asks_for_something_ends_that_request_alone(
    start_worker: Callable[..., WorkerClient], kind: Type, payload: bytes
) -> None:
    worker = start_worker(started=False)
    worker.link.send(kind, 7, payload)
    assert "can't serve this request" in str(worker.reply(7))
    worker.start()
    assert worker.execute("") == b"OK"


def test_another_protocol_is_refused_with_the_way_out(tmp_path_factory: pytest.TempPathFactory) -> None:
    worker = WorkerClient.__new__(WorkerClient)
    worker.log = tmp_path_factory.mktemp("worker") / "log"
    worker.pid, sock = worker._spawn()
    with sock:
        sock.sendall(frames.encode(Type.HELLO, 0, frames.pack([b"1", b"x", b"master", b"0", b"7000"])))
        _, status = os.waitpid(worker.pid, 0)
    assert os.waitstatus_to_exitcode(status) == 1
    assert "build module and worker anew" in worker.log.read_text()


def test_the_worker_dies_with_its_parent(tmp_path_factory: pytest.TempPathFactory) -> None:
    """The parent is killed while another process still holds its end of the socket, so only the kernel can tell."""
    folder = tmp_path_factory.mktemp("parent")
    script = f"""
import os, sys, time
from pathlib import Path
from tests.unit.worker_client import WorkerClient
worker = WorkerClient(Path({str(folder)!r}))
worker.start()
holder = os.fork()
if holder == 0:
    time.sleep(60)
    os._exit(0)
print(worker.pid, holder, flush=True)
time.sleep(60)
"""
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        pid, holder = map(int, parent.stdout.readline().split())
        try:
            parent.kill()
            parent.wait()
            until = time.monotonic() + 10
            while alive(pid) and time.monotonic() < until:
                time.sleep(0.01)
            assert not alive(pid)
        finally:
            os.kill(holder, signal.SIGKILL)


def alive(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False
