"""Clocks jump by an hour, on and back, of one node and of all at once, while a cluster is asked and written.

Each process has a clock of its own (shim.c): nodes, their workers, and the API. Nothing that a replica had is lost, no
answer comes from a text that was replaced, and everything is answered or told to retry.
"""

import asyncio
import os
import shlex
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

import pytest

from shardqa.cluster import redis_server
from shardqa.config import Settings
from tests.faults import aftermath, documents
from tests.faults.running_api import running_api
from tests.faults.shim import Shim, build
from tests.faults.subject import EXTRA, Subject
from tests.faults.workload import Asker, Record, Writer, under_load
from tests.nodes import prepare, running_cluster

pytestmark = pytest.mark.skipif(os.environ.get("FAULTS") != "all", reason="takes a minute; 'make faults' runs it")

HOUR = 3_600
LOAD_SECONDS = 2.0  # after each jump
LAG = 5.0  # of kept answers of another process, on a machine that is busy


@dataclass(frozen=True, slots=True)
class Clocks:
    subject: Subject
    by_port: dict[int, Shim]
    api: Shim
    api_python: Path

    def step(self, ports: Sequence[int], seconds: int) -> None:
        """API processes go with the nodes where all of them do."""
        for port in ports:
            self.by_port[port].step_clock(seconds)
            with self.subject.client(port) as client:
                assert abs(client.time()[0] - time.time() - seconds) < 60
        if len(ports) == len(self.by_port):
            self.api.step_clock(seconds)


def under_shim(path: Path, library: Path, program: str) -> Path:
    """A program that has the clock of the folder it is started in."""
    page = "test -e page || head -c 4096 /dev/zero > page"
    exports = f'export LD_PRELOAD={shlex.quote(str(library))} SHIM_PAGE="$PWD/page"'
    path.write_text(f'#!/bin/sh\n{page}\n{exports}\nexec {shlex.quote(program)} "$@"\n')
    path.chmod(0o755)
    return path


@pytest.fixture
def clocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Clocks]:
    library = build(tmp_path)
    server = under_shim(tmp_path / "server", library, str(redis_server.find_server()))
    worker = under_shim(tmp_path / "python", library, sys.executable)
    monkeypatch.chdir(tmp_path)  # where `server --version` leaves a page
    monkeypatch.setenv("SHARDQA_REDIS_SERVER", str(server))
    own = ("PYTHON", str(worker))
    (tmp_path / "api").mkdir()
    api = Shim(tmp_path / "api", library, "")
    with running_cluster(tmp_path / "data", shards=2, replicas=1, extra=EXTRA, module_arguments=own) as cluster:
        subject = Subject(cluster)
        prepare(cluster)
        subject.wait_until_whole()
        by_port = {one.port: Shim(tmp_path / "data" / one.folder, library, "") for one in cluster.state.nodes}
        yield Clocks(subject, by_port, api, api.python(tmp_path / "api-python", sys.executable))


async def jumps(clocks: Clocks) -> None:
    """Steps the clocks of a master, a replica and all, an hour on and an hour back, each to and from."""
    for seconds in (HOUR, -HOUR):
        nodes = await asyncio.to_thread(clocks.subject.nodes)
        master = next(one.port for one in nodes if one.role == "master")
        replica = next(one.port for one in nodes if one.role == "replica")
        for ports in ([master], [replica], clocks.subject.ports):
            for to in (seconds, 0):
                clocks.step(ports, to)
                await asyncio.sleep(LOAD_SECONDS)
                await asyncio.to_thread(clocks.subject.wait_until_whole)


async def test_when_clocks_jump_under_load_nothing_acknowledged_is_lost_and_no_answer_is_wrong(
    clocks: Clocks, tmp_path: Path
) -> None:
    settings = Settings(redis=clocks.subject.cluster.seed(), corpus="clocks", timeout=30)
    record = Record()
    with running_api(settings, tmp_path, clocks.api_python) as (url, _):
        clients: list[Asker | Writer] = [
            *(Asker(record, settings, Random(n), door) for n, door in enumerate((None, url))),
            *(Writer(record, settings, documents.NAMES[n::2], Random(n), 1, 0.1) for n in range(2)),
        ]
        await under_load(clients, jumps(clocks))
    await aftermath.assert_right(record, settings, clocks.subject, LAG)
