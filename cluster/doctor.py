"""What can be wrong with this machine or a cluster, each with the way out.

Every check is a function that returns its finding; none changes anything. A check that can't be made says so rather
than passing.
"""

import platform
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from redis import Redis
from redis.exceptions import RedisError, ResponseError

from shardqa import keys, topology
from shardqa.cluster import node as talk
from shardqa.cluster import redis_server, tags
from shardqa.errors import SetupError
from shardqa.topology import Node

Verdict = Literal["ok", "warning", "bad", "unknown"]
Connect = Callable[[str, int], Redis]  # (host, port) -> client as the user who asks
EVICTS_DOCUMENTS = "allkeys"  # policies of this kind drop documents, not just cached answers
UP = "start it with 'shardqa up', or load shardqa.so by loadmodule (docs/operating.md)"


@dataclass(frozen=True, slots=True)
class Finding:
    place: str  # this machine, the cluster, or host:port
    check: str
    verdict: Verdict
    found: str
    way_out: str = ""


def machine() -> Iterator[Finding]:
    """redis-server, the built module, the processor."""
    here = platform.node() or "this machine"
    try:
        server = redis_server.find_server()
        version = ".".join(map(str, redis_server.server_version(server)))
        yield Finding(here, "redis-server", "ok", f"{version} at {server}")
    except SetupError as error:
        yield Finding(here, "redis-server", "warning", "none that serves", str(error))
    try:
        yield Finding(here, "module", "ok", str(redis_server.module_path()))
    except SetupError as error:
        yield Finding(here, "module", "warning", "not built", str(error))
    yield _processor(here)


def _processor(here: str) -> Finding:
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        return Finding(here, "processor", "unknown", platform.machine(), "")
    flags = next((line.split(":")[1].split() for line in text.splitlines() if line.startswith("flags")), [])
    useful = [flag for flag in ("avx2", "avx_vnni", "avx512_vnni", "amx_int8") if flag in flags]
    if platform.machine() == "x86_64" and "avx2" not in flags:
        return Finding(
            here, "processor", "warning", "no AVX2", "the reader runs several times slower; use a newer machine"
        )
    return Finding(here, "processor", "ok", f"{platform.machine()} {' '.join(useful)}".strip())


def cluster(seed: str, connect: Connect, user: str, model: str) -> Iterator[Finding]:
    """The cluster that `seed` (host:port) belongs to: its state, then each node."""
    host, _, port = seed.rpartition(":")
    try:
        with connect(host, int(port)) as client:
            info = talk.pairs(talk.text(client, "CLUSTER", "INFO"))
            nodes = topology.read(client)
            state = info.get("cluster_state", "?")
            yield _state(seed, state, nodes)
            yield from _acl(seed, client, user)
    except RedisError as error:
        yield Finding(seed, "cluster", "bad", str(error), "start one with 'shardqa up', or name a node with --redis")
        return
    for node in nodes:
        yield from _node(node, connect, model)


def _state(seed: str, state: str, nodes: list[Node]) -> Finding:
    covered = sum(node.slot_count() for node in nodes)
    masters = sum(node.role == "master" for node in nodes)
    found = f"{state}, {masters} masters, {len(nodes) - masters} replicas, {covered} of {topology.SLOTS} slots"
    if state == "ok" and covered == topology.SLOTS:
        return Finding(seed, "cluster", "ok", found)
    return Finding(seed, "cluster", "bad", found, f"see 'redis-cli --cluster check {seed}' and its fix")


def _acl(seed: str, client: Redis, user: str) -> Iterator[Finding]:
    """Whether the user may GET an answer: the hook behind GET is a command of its own to ACLs."""
    probe = keys.answer("corpus", "tag", 1, "model", 1, "question")
    for words in (("get", probe), ("shardqa.get", probe), ("rg.trigger", "Corpora")):
        try:
            reply = talk.text(client, "ACL", "DRYRUN", user, *words)
        except ResponseError as error:
            yield Finding(seed, f"ACL {words[0]}", "unknown", str(error), "ask as a user who may run ACL DRYRUN")
            continue
        if reply == "OK":
            yield Finding(seed, f"ACL {words[0]}", "ok", f"user {user} may")
        else:
            yield Finding(seed, f"ACL {words[0]}", "bad", reply, f"ACL SETUSER {user} +get +shardqa.get +rg.trigger")


def _node(node: Node, connect: Connect, model: str) -> Iterator[Finding]:
    try:
        with connect(node.host, node.port) as client:
            for check in (_version, _module, _worker, _persistence, _memory):
                yield from check(node, client)
            if node.role == "master" and node.slots:
                yield from _shard(node, client, model)
    except RedisError as error:
        yield Finding(node.address, "reachable", "bad", str(error), "start it again: 'shardqa up --detach'")


def _version(node: Node, client: Redis) -> Iterable[Finding]:
    info = client.info("server")
    version = str(info.get("redis_version"))
    met = tuple(int(part) for part in version.split(".")[:3] if part.isdigit())
    if "valkey_version" in info:
        version = f"Valkey {info['valkey_version']}, which speaks Redis {version}"
    verdict: Verdict = "ok" if met >= redis_server.WANTED else "bad"
    return [Finding(node.address, "redis", verdict, version, "" if verdict == "ok" else redis_server.INSTALL)]


def _module(node: Node, client: Redis) -> Iterable[Finding]:
    try:
        loaded = talk.text(client, "MODULE", "LIST")
    except ResponseError as error:
        return [Finding(node.address, "module", "unknown", str(error), "ask as a user who may run MODULE LIST")]
    if "shardqa" in loaded:
        return [Finding(node.address, "module", "ok", "loaded")]
    return [Finding(node.address, "module", "bad", "not loaded", UP)]


def _worker(node: Node, client: Redis) -> Iterable[Finding]:
    info = client.info("shardqa")
    state = info.get("shardqa_worker_state")
    if state is None:
        return [Finding(node.address, "worker", "bad", "unknown to INFO shardqa", UP)]
    found = f"{state}, restarted {info.get('shardqa_worker_restarts')} times"
    if state == "ready":
        return [Finding(node.address, "worker", "ok", found)]
    return [Finding(node.address, "worker", "bad", found, "see the Redis log of this node for what the worker said")]


def _persistence(node: Node, client: Redis) -> Iterable[Finding]:
    info = client.info("persistence")
    if info.get("aof_enabled") != 1:
        way_out = "CONFIG SET appendonly yes, or a restart loses documents"
        return [Finding(node.address, "AOF", "warning", "off", way_out)]
    state = info.get("aof_last_write_status")
    if state != "ok":
        return [Finding(node.address, "AOF", "bad", f"on, last write {state}", "free disk space")]
    return [_preamble(node, client)]


def _preamble(node: Node, client: Redis) -> Finding:
    """Registrations belong to no key, and a rewrite that is commands alone has room for keys only."""
    try:
        preamble = client.config_get("aof-use-rdb-preamble").get("aof-use-rdb-preamble")
    except ResponseError as error:
        found = f"on, last write ok; {error}"
        return Finding(node.address, "AOF", "unknown", found, "ask as a user who may run CONFIG GET")
    if preamble == "no":
        found = "on, rewritten as commands: registrations would be lost"
        return Finding(node.address, "AOF", "bad", found, "CONFIG SET aof-use-rdb-preamble yes")
    return Finding(node.address, "AOF", "ok", "on, last write ok")


def _memory(node: Node, client: Redis) -> Iterable[Finding]:
    info = client.info("memory")
    policy, limit = str(info.get("maxmemory_policy")), int(info.get("maxmemory", 0))
    found = f"{policy}, maxmemory {info.get('maxmemory_human', limit)}, used {info.get('used_memory_human')}"
    if limit and policy.startswith(EVICTS_DOCUMENTS):
        way_out = "CONFIG SET maxmemory-policy volatile-lru: it evicts cached answers only, never documents"
        return [Finding(node.address, "memory", "bad", found, way_out)]
    return [Finding(node.address, "memory", "ok", found)]


def _shard(node: Node, client: Redis, model: str) -> Iterable[Finding]:
    tag = tags.of_shard(client)
    if tag is None:
        yield Finding(node.address, "functions", "bad", "not registered", "run 'shardqa prepare --redis HOST:PORT'")
        return
    yield Finding(node.address, "functions", "ok", f"registered, tag {tag}")
    if not node.owns(tags.slot(f"{{{tag}}}")):
        yield Finding(
            node.address, "tag", "bad", f"{tag} is in a slot of another master", "wait until its slots settled"
        )
    key = keys.model(model, tag)
    if client.exists(key):
        yield Finding(node.address, "reader", "ok", key)
    else:
        yield Finding(node.address, "reader", "bad", f"no {key}", "run 'shardqa prepare --redis HOST:PORT'")
