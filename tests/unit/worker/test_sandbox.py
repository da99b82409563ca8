"""Things that a confined worker can't do to the machine, each wall by itself where the kernel has it."""

import os
import socket
import subprocess
import sys

import pytest

from shardqa.worker import sandbox

CONFINED = """
import os, socket, sys, threading
from shardqa.worker import sandbox
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


def test_without_either_wall_the_missing_network_is_named() -> None:
    fakes = "sandbox.CREATE_RULESET, sandbox.system_calls.MACHINES = 9999, {}"
    command = [sys.executable, "-c", CONFINED.format(code="").replace("print(", f"{fakes}\nprint(", 1)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert "network:missing(needs_seccomp_or_landlock_4)" in done.stdout


def landlock_version() -> int:
    walls = [wall.removeprefix("landlock") for wall in in_force().split() if wall.startswith("landlock")]
    return int(walls[0])


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
