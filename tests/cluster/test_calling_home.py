"""Nothing calls home: what all processes of a running service connect to and leave behind, seen from outside.

The service runs under strace with an empty home folder. Telemetry of a library would show as a connection to a name
server or to its maker, and as what it keeps about the machine.
"""

import re
import shutil
import signal
import subprocess
import sys
from itertools import takewhile
from pathlib import Path
from subprocess import PIPE, STDOUT

import pytest

from shardqa.cli import service
from tests.cluster.test_up import ENV, ROOT
from tests.nodes import free_port

STRACE = ("strace", "-D", "-f", "-qq", "-e", "trace=connect,sendto,sendmsg", "-e", "signal=none")
ADDRESS = re.compile(r'sin6?_port=htons\((\d+)\).*?(?:inet_addr\(|inet_pton\(AF_INET6, )"([^"]+)"')

Watched = tuple[set[tuple[str, int]], set[int], list[Path]]


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Watched:
    """(addresses spoken to, ports of nodes and API, files left in the home folder) of one demonstration."""
    if not shutil.which("strace") or subprocess.run([*STRACE, "true"], check=False, capture_output=True).returncode:
        pytest.skip("strace is missing or not allowed here (.ci/install-packages strace installs it)")
    place = tmp_path_factory.mktemp("watched")
    data, home, trace = place / "data", place / "home", place / "trace"
    home.mkdir()
    port = free_port()
    http = free_port(0)
    options = ["--data", str(data), "--port", str(port), "--http", str(http), "--shards", "1"]
    command = [*STRACE, "-o", str(trace), sys.executable, "-m", "shardqa.cli", "demo", "seeds/documents", *options]
    quiet = {name: "" for name in ENV if name.startswith("XDG_")}
    environment = {**ENV, **quiet, "HOME": str(home)}
    try:
        with subprocess.Popen(command, env=environment, cwd=ROOT, stdout=PIPE, stderr=STDOUT, text=True) as process:
            assert process.stdout is not None
            said = "".join(takewhile(lambda line: "INFO shardqa" not in line, process.stdout))
            process.send_signal(signal.SIGINT)
            said += process.stdout.read()
    finally:
        service.stop_all(data)
    assert "Marta Ilves" in said, said
    spoken = {(address, int(number)) for number, address in ADDRESS.findall(trace.read_text(errors="replace"))}
    return spoken, {port, port + 10_000, http}, [path for path in home.rglob("*") if path.is_file()]


def test_no_process_speaks_to_anything_but_redis_and_the_api(watched: Watched) -> None:
    spoken, own, _ = watched
    assert spoken, "strace saw nothing: the nodes at least were spoken to"
    assert {where for where in spoken if where[0] not in ("127.0.0.1", "::1") or where[1] not in own} == set()


def test_no_process_leaves_anything_in_the_home_folder(watched: Watched) -> None:
    assert watched[2] == []
