"""Ports, state files and topology of local clusters; what needs running nodes is in tests/cluster."""

import json
import os
import signal
import socket
import subprocess
import threading
from pathlib import Path

import pytest

from shardqa import topology
from shardqa.cli import service
from shardqa.cluster import local, ports, processes, redis_server, state
from shardqa.errors import SetupError


def test_a_bus_port_that_is_taken_moves_the_bus() -> None:
    first = ports.random_block(2, 10_000)
    with socket.socket() as taken:
        taken.bind((ports.HOST, first + 10_001))
        taken.listen()
        offset = ports.bus_offset([first, first + 1], 10_000)
    assert offset > 10_000
    assert ports.bus_offset([first, first + 1], 10_000) == 10_000


def test_a_port_beyond_the_last_one_is_named() -> None:
    with pytest.raises(SetupError, match=r"port 65536 .*outside"):
        ports.check_free([65536], "Redis", "--port")


def test_slots_are_given_out_once_each() -> None:
    for shards in (1, 2, 3, 5, 7, 64):
        ranges = topology.even_ranges(shards)
        slots = [slot for first, last in ranges for slot in range(first, last + 1)]
        assert slots == list(range(topology.SLOTS))


def test_a_topology_lists_each_master_before_its_replicas() -> None:
    reply = (
        "c 127.0.0.1:7003@17003 slave b 0 1 2 connected\n"
        "b 127.0.0.1:7001@17001,host.example master - 0 1 2 connected 8192-16383 [93-<-x]\n"
        "a :7000@17000 myself,master - 0 0 1 connected 0-8190 8191\n"
    )
    nodes = topology.parse(reply)
    assert [n.id for n in nodes] == ["a", "b", "c"]
    assert (nodes[0].host, nodes[0].slot_count(), nodes[2].role, nodes[2].master) == ("127.0.0.1", 8192, "replica", "b")


@pytest.mark.parametrize(
    ("name", "content", "why"),
    [
        (state.STATE, json.dumps({"layout": 99}), r"layout 99.*--data"),
        (state.STATE, '{"layout": 1, "sha', "can't be read"),
        (state.STATE, json.dumps({"layout": state.LAYOUT, "shards": 3}), "damaged"),
        ("thesis.txt", "mine", "not empty"),
    ],
    ids=["another version", "torn", "without nodes", "somebody else's"],
)
def test_a_folder_that_holds_no_cluster_of_ours_is_refused(tmp_path: Path, name: str, content: str, why: str) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(SetupError, match=why):
        state.load(tmp_path)


def test_a_state_reads_back_as_it_was_written(tmp_path: Path) -> None:
    me = processes.identify(os.getpid())
    written = state.ClusterState(3, 0, 7000, 10_000, [state.NodeState("node-0", 7000, me)], 8080, None)
    state.save(tmp_path, written)
    assert state.load(tmp_path) == written


def test_two_commands_do_not_get_the_same_data_directory(tmp_path: Path) -> None:
    with state.lock(tmp_path), pytest.raises(SetupError, match="another shardqa command"), state.lock(tmp_path):
        pass


def test_a_process_with_another_start_time_is_never_stopped() -> None:
    child = subprocess.Popen(["sleep", "60"])
    try:
        identity = processes.identify(child.pid)
        assert identity is not None
        stranger = processes.ProcessId(identity.pid, identity.started + 1)
        assert processes.stop([stranger]) == []
        assert processes.alive(identity)
    finally:
        child.kill()
        child.wait()


def test_nodes_and_api_are_stopped_on_a_full_disk(tmp_path: Path) -> None:
    children = [subprocess.Popen(["sleep", "60"]) for _ in range(2)]
    node, api = (processes.identify(child.pid) for child in children)
    state.save(tmp_path, state.ClusterState(1, 0, 7000, 10_000, [state.NodeState("node-0", 7000, node)], 8080, api))
    (tmp_path / f"{state.STATE}.new").symlink_to("/dev/full")
    assert service.stop_all(tmp_path) == ([7000], 8080)
    assert [child.wait() for child in children] == [-signal.SIGTERM] * 2
    assert service.stop_all(tmp_path) == ([], None)


def test_a_process_that_ignores_the_request_to_end_is_killed() -> None:
    child = subprocess.Popen(["sh", "-c", "trap '' TERM; echo; sleep 60 & wait"], stdout=subprocess.PIPE)
    assert child.stdout is not None
    child.stdout.readline()
    identity = processes.identify(child.pid)
    assert identity is not None
    assert processes.stop([identity], seconds=0.1) == [identity]
    assert child.wait() == -signal.SIGKILL
    child.stdout.close()


def test_a_missing_redis_server_says_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("SHARDQA_REDIS_SERVER", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SetupError, match="apt-get install redis-server"):
        redis_server.find_server()


def server(path: Path, says: str) -> Path:
    path.write_text(f"#!/bin/sh\necho '{says}'\n")
    path.chmod(0o755)
    return path


def test_valkey_is_taken_where_there_is_no_redis(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    valkey = server(tmp_path / "valkey-server", "Valkey server v=8.0.1 sha=00000000:0 malloc=jemalloc-5.3.0 bits=64")
    monkeypatch.delenv("SHARDQA_REDIS_SERVER", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert redis_server.find_server() == valkey


def test_redis_6_is_refused_with_both_versions(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    old = server(tmp_path / "redis-server", "Redis server v=6.2.14 sha=00000000:0 malloc=jemalloc bits=64")
    monkeypatch.setenv("SHARDQA_REDIS_SERVER", str(old))
    with pytest.raises(SetupError, match=r"Redis 6\.2\.14, wanted at least 7\.0\.0"):
        redis_server.find_server()


def test_a_first_node_that_loads_as_a_replica_is_of_a_formed_cluster() -> None:
    def say_loading(server: socket.socket) -> None:
        with server.accept()[0] as client:
            while client.recv(1000):
                client.sendall(b"-LOADING Redis is loading the dataset in memory\r\n")

    with socket.create_server((ports.HOST, 0)) as server:
        threading.Thread(target=say_loading, args=(server,), daemon=True).start()
        shape = state.ClusterState(1, 1, server.getsockname()[1], 10_000, [])
        assert local._is_formed(shape)


def test_a_cluster_without_masters_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match="--shards 0"):
        local.start(local.ClusterOptions(data=tmp_path / "data", shards=0, module=Path("/nowhere.so")))


@pytest.mark.parametrize("shared", [True, False])
def test_nodes_share_large_models_where_they_are_told_to(tmp_path: Path, shared: bool) -> None:
    wanted = local.ClusterOptions(data=tmp_path, share_models=shared, module_arguments=("MEMORY", "900"))
    shape = state.ClusterState(1, 0, 7000, 10_000, [state.NodeState("node-0", 7000, None)], None, None)
    config = local._config(shape.nodes[0], shape, tmp_path, wanted, Path("/m.so"))
    assert config.module_arguments == (*(("MODELS", str(tmp_path / "models")) if shared else ()), "MEMORY", "900")


@pytest.mark.parametrize("value", ["plain", "", "two words", 'quo"te', "back\\slash", "línea\n", "\x00\x7f"])
def test_any_value_survives_the_configuration_file(value: str) -> None:
    assert _unquote(redis_server.quote(value)) == value.encode()


def _unquote(text: str) -> bytes:
    """A word of redis.conf: a double-quoted string with \\xHH escapes, or a bare word."""
    if not text.startswith('"'):
        return text.encode()
    body = text[1:-1].encode()
    out, i = bytearray(), 0
    while i < len(body):
        if body[i : i + 2] == b"\\x":
            out.append(int(body[i + 2 : i + 4], 16))
            i += 4
        else:
            out.append(body[i])
            i += 1
    return bytes(out)
