"""Things that a confined worker can't do to the machine, each wall by itself where the kernel has it."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from shardqa.module.worker import sandbox

CONFINED = """
import os, socket, sys, threading
from shardqa.module.worker import sandbox
print(sandbox.confine(os.environ), flush=True)
{code}
"""


def confined(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", CONFINED.format(code=code)]
    return subprocess.run(command, capture_output=True, text=True, env={**os.environ, **environment}, timeout=60)


def in_force() -> str:
    return confined("").stdout


def needs(wall: str) -> None:
    if f"{wall}:missing" in in_force():
        pytest.skip(f"this kernel has no {wall}")


@pytest.mark.parametrize(
    "code",
    [
        "os.execv('/bin/true', ['true'])",
        "os.fork()",
        "os.posix_spawn('/bin/true', ['true'], {})",
        "os.kill(os.getppid(), 0)",
        "os.kill(1, 0)",
        "socket.socket(socket.AF_UNIX)",
        "socket.socket(socket.AF_INET, socket.SOCK_DGRAM)",
        "socket.socket(socket.AF_NETLINK, socket.SOCK_RAW)",
        "s = socket.socket(); s.listen()",
    ],
)
@pytest.mark.parametrize("network", ["any", "peers"])
def test_seccomp_refuses(code: str, network: str) -> None:
    needs("seccomp")
    done = confined(code, **{sandbox.NETWORK: network})
    assert "PermissionError" in done.stderr, (done.stdout, done.stderr)


CONNECT = """
import struct
listening = socket.socket(fileno={fd})
s = socket.socket(fileno={other})
s.connect(listening.getsockname())
"""


@pytest.mark.parametrize("wall", ["seccomp", "landlock"])
def test_each_wall_by_itself_keeps_the_network_out(wall: str) -> None:
    """Holds also with a socket from before the walls, as one from elsewhere would be."""
    needs(wall)
    if wall == "landlock" and landlock_version() < sandbox.NETWORK_SINCE:
        pytest.skip("this kernel's landlock does not know TCP")
    other = {"seccomp": "CREATE_RULESET = 9999", "landlock": "system_calls.MACHINES = {}"}[wall]
    with socket.create_server(("127.0.0.1", 0)) as listening, socket.socket() as free:
        code = CONNECT.format(fd=listening.fileno(), other=free.fileno())
        command = [sys.executable, "-c", CONFINED.format(code=code).replace("print(", f"sandbox.{other}\nprint(", 1)]
        kept = (listening.fileno(), free.fileno())
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, pass_fds=kept)
    assert "network:peers" in done.stdout
    assert "PermissionError" in done.stderr, (done.stdout, done.stderr)


def test_any_network_is_tcp_to_anywhere() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        code = f"socket.create_connection(('127.0.0.1', {listening.getsockname()[1]}))"
        done = confined(code, **{sandbox.NETWORK: "any"})
    assert done.returncode == 0, done.stderr
    assert "network:any" in done.stdout


def test_without_either_wall_the_missing_network_is_named() -> None:
    fakes = "sandbox.CREATE_RULESET, sandbox.system_calls.MACHINES = 9999, {}"
    command = [sys.executable, "-c", CONFINED.format(code="").replace("print(", f"{fakes}\nprint(", 1)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert "network:missing(needs_seccomp_or_landlock_4)" in done.stdout


def landlock_version() -> int:
    walls = [wall.removeprefix("landlock") for wall in in_force().split() if wall.startswith("landlock")]
    return int(walls[0])


def test_what_needs_more_memory_than_it_may_have_fails_and_the_rest_goes_on() -> None:
    code = """
try:
    bytearray(1 << 30)
except MemoryError:
    from shardqa.module.worker.gears.pipeline.run import describe
    print(describe(MemoryError()), len(bytearray(1 << 20)))
"""
    done = confined(code, **{sandbox.MEMORY: "600"})
    assert "memory:600MB" in done.stdout
    assert "OOM the function needed more memory than the worker may have (600 MB, the module's argument MEMORY)" in (
        done.stdout
    )
    assert done.stdout.endswith(f"{1 << 20}\n"), done.stderr


@pytest.mark.skipif(os.getuid() != 0, reason="only root becomes another user")
def test_it_becomes_the_user_it_shall_run_as_for_good() -> None:
    """Before all imports: this Python may lie where that user can't read."""
    code = f"""
import importlib.util, os, sys
spec = importlib.util.spec_from_file_location('sandbox', {sandbox.__file__!r})
sandbox = importlib.util.module_from_spec(spec); spec.loader.exec_module(sandbox)
import platform, resource, threading
print(sandbox.confine({{'SHARDQA_USER': '65534:65533', 'SHARDQA_SANDBOX': 'no'}}))
print(os.getresuid(), os.getresgid(), os.getgroups())
print(open('/proc/self/status').read().count('CapEff:\t0000000000000000'))
try:
    os.setresuid(0, 0, 0)
except PermissionError:
    print('for good')
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    wanted = "off user:65534\n(65534, 65534, 65534) (65533, 65533, 65533) []\n1\nfor good\n"
    assert done.stdout == wanted, done.stderr


@pytest.mark.parametrize(
    "code",
    [
        "import pathlib; pathlib.Path('/etc/shadow').read_bytes()",
        "import pathlib; pathlib.Path('/etc/fstab').read_bytes()",
        "os.listdir('/root')",
        "os.listdir('/')",
        "open('/var/tmp/shardqa-sandbox-test', 'w')",
        "os.mkdir('/var/tmp/shardqa-sandbox-test')",
        "os.unlink('/etc/hosts')",
        "os.truncate('/etc/hosts', 0)",
        "s = socket.socket(); s.bind(('127.0.0.1', 0))",
    ],
)
def test_landlock_refuses(code: str) -> None:
    needs("landlock")
    done = confined(code)
    assert "PermissionError" in done.stderr, (done.stdout, done.stderr)


@pytest.mark.parametrize(
    "code",
    [
        "import numpy, onnxruntime, tokenizers",
        "import shardqa.module.worker.worker",
        "import shardqa.gears_functions.registration",
        "t = threading.Thread(target=print); t.start(); t.join()",
        "socket.socketpair()",
        "open('/proc/self/status').read()",
        "open('/proc/cpuinfo').read()",
        "open('/dev/null', 'w').write('x')",
        "os.urandom(8); os.kill(os.getpid(), 0)",
        "import mmap; mmap.mmap(-1, 4096)",
        "import datetime, zoneinfo; zoneinfo.ZoneInfo('UTC')",
    ],
)
def test_what_functions_and_models_need_goes_on(code: str) -> None:
    done = confined(code)
    assert done.returncode == 0, done.stderr


def test_a_confined_process_reads_no_other_processs_memory() -> None:
    needs("landlock")
    needs("capabilities")
    done = confined("open(f'/proc/{os.getppid()}/environ').read()")
    assert "PermissionError" in done.stderr, (done.stdout, done.stderr)


def test_folders_that_are_named_are_read_and_written(tmp_path: Path) -> None:
    needs("landlock")
    readable, writable = tmp_path / "readable", tmp_path / "writable"
    for folder in (readable, writable):
        folder.mkdir()
        (folder / "a").write_text("text")
    named = {sandbox.READABLE: str(readable), sandbox.WRITABLE: f"/nonexistent:{writable}"}
    code = f"print(open('{readable}/a').read()); open('{writable}/b', 'w').write('x'); os.unlink('{writable}/a')"
    assert confined(code, **named).returncode == 0
    assert "PermissionError" in confined(f"open('{readable}/b', 'w')", **named).stderr


def test_no_core_file_holds_documents() -> None:
    done = confined("import resource; print(resource.getrlimit(resource.RLIMIT_CORE))")
    assert "(0, 0)" in done.stdout


def test_what_is_in_force_is_named() -> None:
    names = [wall.partition(":")[0].rstrip("0123456789") for wall in in_force().split()]
    assert names == ["no_new_privs", "capabilities", "landlock", "limits", "seccomp", "network"]


def test_a_missing_wall_is_named_and_the_rest_stands() -> None:
    code = "os.fork()"
    fake = "sandbox.CREATE_RULESET = 9999"
    command = [sys.executable, "-c", CONFINED.format(code=code).replace("print(", f"{fake}\nprint(", 1)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert "landlock:missing(Function_not_implemented)" in done.stdout
    assert "landlock is not in force" in done.stderr
    assert "PermissionError" in done.stderr


def test_it_can_be_left_off() -> None:
    done = confined("os._exit(os.waitstatus_to_exitcode(os.waitpid(os.posix_spawn('/bin/true', ['true'], {}), 0)[1]))",
                    **{sandbox.VARIABLE: "no"})  # fmt: skip
    assert (done.stdout, done.returncode) == ("off\n", 0)
