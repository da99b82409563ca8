"""Hosts that the network cuts from one another, both ways or one, or slows: nothing acknowledged is lost.

Seven nodes on three hosts. The first has a master alone; the others have two masters and a replica or two of each. The
first is cut off, by itself and then from clients too: its master's replica takes over on another host. A write counts
as acknowledged once a replica has it (WAIT): what the cut master took alone is lost, as in any Redis Cluster. Needs
root, and network namespaces.
"""

import asyncio
import os
import stat
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random
from time import monotonic
from typing import Any

import pytest
from redis import Redis

from shardqa import topology
from shardqa.cluster import ports, redis_server
from shardqa.config import Settings
from shardqa.engine import Engine
from shardqa.errors import ShardqaError
from tests.faults import aftermath, documents
from tests.faults.hosts import HERE, Hosts, NoNamespaces
from tests.faults.subject import SECONDS, Watched
from tests.faults.workload import Asker, Record, Writer, under_load
from tests.nodes import Node, prepare_settings, wait_until

pytestmark = [
    pytest.mark.skipif(os.environ.get("FAULTS") != "all", reason="takes a minute; 'make faults' runs it"),
    pytest.mark.skipif(os.geteuid() != 0, reason="only root makes network namespaces"),
]

LAG = 5.0  # of kept answers of another process, on a machine that is busy
PARTED_SECONDS = 4.0  # that it lasts once the replica has taken over
HURT_SECONDS = 15.0  # more than a failover takes
SLOW = "120kbit"
ONE_WAY = {  # who sends what is dropped, and who would get it
    "to other hosts": ([0], [1, 2]),
    "from other hosts": ([1, 2], [0]),
    "to clients": ([0], [HERE]),
    "from clients": ([HERE], [0]),
}
PLACES = ((0, None), (1, None), (2, None), (1, 0), (2, 0), (2, 1), (1, 2))  # of each node: host, shard it replicates
EXTRA = (
    ("protected-mode", "no"),
    ("appendfsync", "always"),
    ("cluster-node-timeout", "3000"),
    ("min-replicas-to-write", "1"),
    ("min-replicas-max-lag", "3"),
)
FROM_AFAR = ("PYEXECUTE", "yes")


class HostNode(Node):
    """A node on one of the hosts."""

    def __init__(self, hosts: Hosts, host: int, folder: Path, port: int) -> None:
        self.host = host
        self.address = hosts.address(host)
        super().__init__(
            folder, port=port, cluster=True, extra=(("bind", self.address), *EXTRA), module_arguments=FROM_AFAR
        )
        self._server = folder / "server"
        folder.mkdir(parents=True)
        command = [*hosts.command(host), str(redis_server.find_server())]
        self._server.write_text(f'#!/bin/sh\nexec {" ".join(command)} "$@"\n')
        self._server.chmod(self._server.stat().st_mode | stat.S_IXUSR)

    def launch(self) -> None:
        self.process = redis_server.spawn(self.config, self._server)

    def client(self, **options: Any) -> Redis:
        return Redis(host=self.address, port=self.port, socket_timeout=20, socket_connect_timeout=5, **options)


@dataclass(frozen=True, slots=True)
class Parted:
    hosts: Hosts
    nodes: list[HostNode]
    subject: Watched
    settings: Settings


@pytest.fixture(scope="module")
def parted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Parted]:
    folder = tmp_path_factory.mktemp("hosts")
    try:
        hosts = Hosts(3).__enter__()
    except NoNamespaces as error:
        pytest.skip(f"no network namespaces here: {error}")
    first = ports.random_block(len(PLACES), len(PLACES))
    nodes = [HostNode(hosts, host, folder / str(n), first + 2 * n) for n, (host, _) in enumerate(PLACES)]
    try:
        for node in nodes:
            node.launch()
        wait_until(lambda: all(node.ready() for node in nodes), "all nodes answer")
        form(nodes)
        subject = Watched({node.port: node.address for node in nodes})
        subject.wait_until_whole()
        seeds = ",".join(f"{node.address}:{node.port}" for node in nodes)
        settings = Settings(redis=seeds, timeout=90)
        prepare_settings(settings)
        yield Parted(hosts, nodes, subject, settings)
    finally:
        hosts.heal()
        for node in nodes:
            node.stop()
        hosts.__exit__()


def form(nodes: list[HostNode]) -> None:
    masters = [node for node, (_, shard) in zip(nodes, PLACES, strict=True) if shard is None]
    for n, (node, slots) in enumerate(zip(masters, topology.even_ranges(len(masters)), strict=True)):
        with node.client() as client:
            client.execute_command("CLUSTER", "ADDSLOTSRANGE", *slots)
            client.execute_command("CLUSTER", "SET-CONFIG-EPOCH", n + 1)
    for node in nodes:
        with nodes[0].client() as client:
            client.execute_command("CLUSTER", "MEET", node.address, node.port, node.config.bus_port)
    for node, (_, shard) in zip(nodes, PLACES, strict=True):
        with node.client() as client:
            wait_until(lambda c=client: len(topology.read(c)) == len(nodes), "all have met", SECONDS)  # type: ignore[misc]
            if shard is not None:
                with masters[shard].client() as master:
                    client.execute_command("CLUSTER", "REPLICATE", master.execute_command("CLUSTER", "MYID"))


async def answered_by_all(settings: Settings, since: float) -> float:
    """Seconds until a question is."""
    engine = await Engine.connect(settings)
    try:
        while monotonic() < since + SECONDS:
            try:
                if not (await engine.ask(f"Who built the bridge of Arnsby? {monotonic()}", fresh=True)).partial:
                    return monotonic() - since
            except ShardqaError:
                pass
            await asyncio.sleep(0.05)
    finally:
        await engine.close()
    pytest.fail(f"answers are partial {SECONDS:g} s after it")


@pytest.mark.parametrize("cut_from", [[1, 2], [1, 2, HERE]], ids=["from hosts", "from hosts and clients"])
async def test_a_master_in_the_minority_is_replaced_and_nothing_acknowledged_is_lost(
    parted: Parted, cut_from: list[int]
) -> None:
    settings = parted.settings.model_copy(update={"corpus": f"parted-{len(cut_from)}"})
    await assert_right_after(parts(parted, settings, cut_from), parted, settings)


@pytest.mark.parametrize("name", ONE_WAY)
async def test_nothing_acknowledged_is_lost_where_packets_of_one_direction_are(parted: Parted, name: str) -> None:
    settings = parted.settings.model_copy(update={"corpus": name.replace(" ", "-")})
    await assert_right_after(hurt(parted, settings, lambda: parted.hosts.drop(*ONE_WAY[name])), parted, settings)


async def test_nothing_acknowledged_is_lost_where_a_host_is_slow(parted: Parted) -> None:
    settings = parted.settings.model_copy(update={"corpus": "slow"})
    await assert_right_after(hurt(parted, settings, lambda: parted.hosts.slow(0, SLOW)), parted, settings)


async def assert_right_after(harm: Awaitable[None], parted: Parted, settings: Settings) -> None:
    """Clients ask and write while it does harm."""
    record = Record()
    clients: list[Asker | Writer] = [
        *(Asker(record, settings, Random(n)) for n in range(2)),
        *(Writer(record, settings, documents.NAMES[n::2], Random(n), 1, 0.05) for n in range(2)),
    ]
    await asyncio.to_thread(home, parted)
    await under_load(clients, harm)
    await aftermath.assert_right(record, settings, parted.subject, LAG)


def home(parted: Parted) -> None:
    """The first host's node is a master again."""
    first = parted.nodes[0]
    if parted.subject.role(first.port) != "master":
        with first.client() as client:
            client.execute_command("CLUSTER", "FAILOVER")
        parted.subject.wait_until_master(first.port)
        parted.subject.wait_until_whole()


def has_master(parted: Parted, some: list[int]) -> bool:
    return any(parted.subject.role(port) == "master" for port in some)


async def parts(parted: Parted, settings: Settings, cut_from: list[int]) -> None:
    """The first host is cut off, until its shard has another master and some time longer."""
    await asyncio.sleep(PARTED_SECONDS)
    candidates = [node.port for node, (_, shard) in zip(parted.nodes, PLACES, strict=True) if shard == 0]
    parted.hosts.cut([0], cut_from)
    begin = monotonic()
    try:
        await asyncio.to_thread(wait_until, lambda: has_master(parted, candidates), "a replica took over", SECONDS)
        taken = monotonic() - begin
        whole = await answered_by_all(settings, begin)
        print(f"cut: a replica took over after {taken:.1f} s, all answer after {whole:.1f} s")
        await asyncio.sleep(PARTED_SECONDS)
    finally:
        parted.hosts.heal()
    await asyncio.to_thread(parted.subject.wait_until_whole)
    await asyncio.sleep(PARTED_SECONDS)


async def hurt(parted: Parted, settings: Settings, harm: Callable[[], None]) -> None:
    """The harm lasts for some seconds, whoever takes over."""
    await asyncio.sleep(PARTED_SECONDS)
    harm()
    try:
        await asyncio.sleep(HURT_SECONDS)
    finally:
        parted.hosts.heal()
    healed = monotonic()
    await asyncio.to_thread(parted.subject.wait_until_whole)
    print(
        f"whole {monotonic() - healed:.1f} s after it, all answer after {await answered_by_all(settings, healed):.1f} s"
    )
    await asyncio.sleep(PARTED_SECONDS)
