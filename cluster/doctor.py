"""Checks of this machine and of a cluster; each fault comes with its remedy.

Every check is a function that returns its finding; none changes anything. A check that can't be made says so rather
than passing.
"""

import platform
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

from redis import Redis
from redis.exceptions import NoPermissionError, RedisError, ResponseError

from shardqa import keys, machine, topology
from shardqa.cluster import node as talk
from shardqa.cluster import redis_server, tags
from shardqa.errors import SetupError
from shardqa.topology import Node

Verdict = Literal["ok", "warning", "bad", "unknown"]
Connect = Callable[[str, int], Redis]  # (host, port) -> client as the user who asks
EVICTS_DOCUMENTS = "allkeys"  # policies of this kind drop documents, not just cached answers
ALMOST = 0.9  # of a worker's MEMORY, past which functions are about to fail
WAYS_OUT = {  # by the code of Redis' refusal
    "OOM": "delete documents ('shardqa rm'), or CONFIG SET maxmemory to more",
    "NOREPLICAS": "start this node's replicas, or CONFIG SET min-replicas-to-write to fewer",
    "MISCONF": "free disk space where this node's data is; its log says what failed",
}
UP = "start it with 'shardqa up', or load the file that 'shardqa module-path' names by loadmodule"


@dataclass(frozen=True, slots=True)
class Finding:
    place: str  # this machine, the cluster, or host:port
    check: str
    verdict: Verdict
    found: str
    remedy: str = ""


def this_machine() -> Iterator[Finding]:
    """Looks at redis-server, the built module and the processor."""
    place = platform.node() or "this machine"
    try:
        server = redis_server.find_server()
        version = ".".join(map(str, redis_server.server_version(server)))
        yield Finding(place, "redis-server", "ok", f"{version} at {server}")
    except SetupError as error:
        yield Finding(place, "redis-server", "warning", "none that serves", str(error))
    try:
        yield Finding(place, "module", "ok", str(redis_server.module_path()))
    except SetupError as error:
        yield Finding(place, "module", "warning", "not built", str(error))
    yield _processor(place)


def _processor(place: str) -> Finding:
    flags = machine.processor().flags
    if flags is None:
        return Finding(place, "processor", "unknown", platform.machine(), "")
    useful = [flag for flag in ("avx2", "avx_vnni", "avx512_vnni", "amx_int8") if flag in flags]
    if platform.machine() == "x86_64" and "avx2" not in flags:
        return Finding(place, "processor", "warning", "no AVX2", "reading is several times slower; use a newer machine")
    return Finding(place, "processor", "ok", f"{platform.machine()} {' '.join(useful)}".strip())


def cluster(seed: str, connect: Connect, user: str, model: str, corpus: str) -> Iterator[Finding]:
    """Looks at the cluster of `seed` (host:port): its state, whether `user` may ask `corpus`, then each node."""
    host, _, port = seed.rpartition(":")
    try:
        with connect(host, int(port)) as client:
            info = talk.pairs(talk.text(client, "CLUSTER", "INFO"))
            nodes = topology.read(client)
            state = info.get("cluster_state", "?")
            yield _state(seed, state, nodes)
            yield from _acl(seed, client, user, corpus)
    except NoPermissionError as error:
        yield _right_missing(seed, "cluster", user, error)
        return
    except RedisError as error:
        yield Finding(seed, "cluster", "bad", str(error), "start one with 'shardqa up', or name a node with --redis")
        return
    for node in nodes:
        yield from _node(node, connect, user, model)


def _right_missing(place: str, check: str, user: str, refusal: NoPermissionError) -> Finding:
    """Finds the right that the user lacks: Redis names a refused command ('cluster|info'), else it refuses a key."""
    match = re.search(r"'([\w.|-]+)'", str(refusal))
    remedy = f"ACL SETUSER {user} +{match[1]}" if match else f"ACL SETUSER {user} ~PATTERN with the key that it names"
    return Finding(place, check, "unknown", str(refusal), remedy)


def _state(seed: str, state: str, nodes: list[Node]) -> Finding:
    slots = sum(node.slot_count() for node in nodes)
    masters = sum(node.role == "master" for node in nodes)
    fact = f"{state}, {masters} masters, {len(nodes) - masters} replicas, {slots} of {topology.SLOTS} slots"
    if state == "ok" and slots == topology.SLOTS:
        return Finding(seed, "cluster", "ok", fact)
    return Finding(seed, "cluster", "bad", fact, f"see 'redis-cli --cluster check {seed}' and its fix")


def _acl(seed: str, client: Redis, user: str, corpus: str) -> Iterator[Finding]:
    """Finds whether the user may GET an answer: the hook behind GET is a command of its own to ACLs."""
    probe = keys.answer(corpus, "tag", 1, "model", 1, "question")  # of no shard's tag: nothing is computed or kept
    remedy = f"ACL SETUSER {user} +get +shardqa.get +rg.trigger ~answer:{corpus}:*"
    for words in (("get", probe), ("shardqa.get", probe), ("rg.trigger", "Corpora")):
        check = f"ACL {words[0]}"
        try:
            refusal = _refusal(client, user, words)
        except ResponseError as error:
            yield Finding(seed, check, "unknown", str(error), "ask as a user who may run ACL DRYRUN")
            continue
        if refusal is None:
            yield Finding(seed, check, "ok", f"user {user} may")
        else:
            yield Finding(seed, check, "bad", refusal, remedy)


def _refusal(client: Redis, user: str, words: tuple[str, str]) -> str | None:
    """Says why Redis refuses the command to the user, if it does. Raises ResponseError where it can't tell."""
    try:
        reply = talk.text(client, "ACL", "DRYRUN", user, *words)
    except NoPermissionError:
        return _refusal_of_itself(client, words)
    return None if reply == "OK" else reply


def _refusal_of_itself(client: Redis, words: tuple[str, str]) -> str | None:
    """Says the same by running the command, for a user without DRYRUN: Redis looks at rights first."""
    try:
        talk.command(client, *words)
    except NoPermissionError as error:
        return str(error)
    except ResponseError:
        return None  # another's slot or tag
    return None


def _node(node: Node, connect: Connect, user: str, model: str) -> Iterator[Finding]:
    try:
        with connect(node.host, node.port) as client:
            for check in (_version, _module, _worker, _persistence, _memory):
                yield from check(node, client)
            if node.role == "master" and node.slots:
                yield from _shard(node, client, model)
    except NoPermissionError as error:
        yield _right_missing(node.address, "rights", user, error)
    except RedisError as error:
        yield Finding(node.address, "reachable", "bad", str(error), "start it again: 'shardqa up --detach'")


def _version(node: Node, client: Redis) -> Iterable[Finding]:
    info = client.info("server")
    version = str(info.get("redis_version"))
    numbers = tuple(int(part) for part in version.split(".")[:3] if part.isdigit())
    if "valkey_version" in info:
        version = f"Valkey {info['valkey_version']}, which speaks Redis {version}"
    verdict: Verdict = "ok" if numbers >= redis_server.WANTED else "bad"
    return [Finding(node.address, "redis", verdict, version, "" if verdict == "ok" else redis_server.INSTALL)]


def _module(node: Node, client: Redis) -> Iterable[Finding]:
    modules = client.info("modules").get("modules", [])  # MODULE LIST says no more, and is for administrators
    if any(module.get("name") == "shardqa" for module in modules):
        return [Finding(node.address, "module", "ok", "loaded")]
    return [Finding(node.address, "module", "bad", "not loaded", UP)]


def _worker(node: Node, client: Redis) -> Iterable[Finding]:
    info = client.info("shardqa")
    state = info.get("shardqa_worker_state")
    if state is None:
        return [Finding(node.address, "worker", "bad", "unknown to INFO shardqa", UP)]
    state_text = f"{state}, restarts: {info.get('shardqa_worker_restarts')}"
    if last := info.get("shardqa_worker_last_end"):
        state_text += f", last because {last}"
    if running := info.get("shardqa_worker_last_running"):
        state_text += f" while it ran {running}"
    verdict: Verdict = "ok" if state == "ready" else "bad"
    remedy = "" if state == "ready" else "see the Redis log of this node for what the worker said"
    return [Finding(node.address, "worker", verdict, state_text, remedy), *_sandbox(node, info), *_put_away(node, info)]


def _put_away(node: Node, info: dict[str, Any]) -> Iterator[Finding]:
    """Finds models, documents and scripts that did harm or fail."""
    if models := info.get("shardqa_models_quarantined"):
        fact = f"{models} in quarantine: {info.get('shardqa_models_quarantined_keys')}"
        yield Finding(node.address, "models", "bad", fact, "store them again, or delete them; the Redis log says why")
    if documents := info.get("shardqa_documents_aside"):
        fact = f"{documents} set aside: {info.get('shardqa_documents_aside_keys')}"
        remedy = "the worker ended twice as it read them: change or split their texts, or delete them ('shardqa rm')"
        yield Finding(node.address, "documents", "bad", fact, remedy)
    if sessions := info.get("shardqa_sessions_inactive"):
        fact = f"{sessions} stored scripts without functions: {info.get('shardqa_sessions_inactive_ids')}"
        remedy = "RG.DUMPREGISTRATIONS says why (lastError); send them again, or remove them by RG.UNREGISTER"
        yield Finding(node.address, "functions", "bad", fact, remedy)


def _sandbox(node: Node, info: dict[str, Any]) -> Iterator[Finding]:
    """Says how functions are kept from the machine (docs/operating.md, Sandbox), once the worker is ready."""
    sandbox = info.get("shardqa_sandbox")
    if str(sandbox).startswith("off"):
        remedy = "load the module without SANDBOX no, unless its functions need the machine"
        yield Finding(node.address, "sandbox", "warning", str(sandbox), remedy)
    elif sandbox and "missing" in str(sandbox):
        yield Finding(node.address, "sandbox", "warning", str(sandbox), "a newer kernel, or a container that lets it")
    elif sandbox:
        yield Finding(node.address, "sandbox", "ok", str(sandbox))
    yield from _worker_memory(node, info)


def _worker_memory(node: Node, info: dict[str, Any]) -> Iterator[Finding]:
    """Finds how near a worker is to its MEMORY, where the module was loaded with that."""
    limit, use = int(info.get("shardqa_memory_limit_mb", 0)), int(info.get("shardqa_allocated_mb", 0))
    if limit and use > ALMOST * limit:
        remedy = "load the module with more MEMORY, or spread the documents over more shards"
        yield Finding(node.address, "worker's memory", "warning", f"{use} of {limit} MB", remedy)
    elif limit:
        yield Finding(node.address, "worker's memory", "ok", f"{use} of {limit} MB")


def _persistence(node: Node, client: Redis) -> Iterable[Finding]:
    info = client.info("persistence")
    if info.get("aof_enabled") != 1:
        remedy = "CONFIG SET appendonly yes, or a restart loses documents"
        return [Finding(node.address, "AOF", "warning", "off", remedy)]
    state = info.get("aof_last_write_status")
    if state != "ok":
        return [Finding(node.address, "AOF", "bad", f"on, last write {state}", "free disk space")]
    return [_preamble(node, client)]


def _preamble(node: Node, client: Redis) -> Finding:
    """Finds whether registrations outlast a rewrite: they belong to no key, so it needs the RDB preamble."""
    try:
        preamble = client.config_get("aof-use-rdb-preamble").get("aof-use-rdb-preamble")
    except ResponseError as error:
        fact = f"on, last write ok; {error}"
        return Finding(node.address, "AOF", "unknown", fact, "ask as a user who may run CONFIG GET")
    if preamble == "no":
        fact = "on, rewritten as commands: registrations would be lost"
        return Finding(node.address, "AOF", "bad", fact, "CONFIG SET aof-use-rdb-preamble yes")
    return Finding(node.address, "AOF", "ok", "on, last write ok")


def _memory(node: Node, client: Redis) -> Iterable[Finding]:
    info = client.info("memory")
    policy, limit = str(info.get("maxmemory_policy")), int(info.get("maxmemory", 0))
    fact = f"{policy}, maxmemory {info.get('maxmemory_human', limit)}, used {info.get('used_memory_human')}"
    if limit and policy.startswith(EVICTS_DOCUMENTS):
        remedy = "CONFIG SET maxmemory-policy volatile-lru: it evicts cached answers only, never documents"
        return [Finding(node.address, "memory", "bad", fact, remedy)]
    return [Finding(node.address, "memory", "ok", fact)]


def _shard(node: Node, client: Redis, model: str) -> Iterable[Finding]:
    shard = tags.description(client)
    if shard is None:
        yield Finding(node.address, "functions", "bad", "not registered", "run 'shardqa prepare --redis HOST:PORT'")
        return
    tag = shard.tag
    yield Finding(node.address, "functions", "ok", f"registered, tag {tag}")
    yield _writes(node, shard.refuses)
    if not node.owns(tags.slot(f"{{{tag}}}")):
        yield Finding(node.address, "tag", "bad", f"{tag} is in a slot of another master", "wait until slots settle")
    key = keys.model(model, tag)
    if client.exists(key):
        yield Finding(node.address, "reader", "ok", key)
    else:
        yield Finding(node.address, "reader", "bad", f"no {key}", "run 'shardqa prepare --redis HOST:PORT'")
    yield from _encoder(node, client, tag)


def _encoder(node: Node, client: Redis, tag: str) -> Iterator[Finding]:
    """Finds faults of a stored encoder; a shard without one is in order."""
    key = keys.model(keys.ENCODER, tag)
    answer = tags.corpora(client)
    parts = [part for part in answer.corpora.values() if part.encoded is not None] if answer else []
    if client.exists(key):
        passages, vectors = sum(part.passages for part in parts), sum(part.encoded or 0 for part in parts)
        sizes = f"{key}, {vectors:,} of {passages:,} passages have vectors"
        yield Finding(node.address, "encoder", "ok", sizes)


def _writes(node: Node, refuses: str | None) -> Finding:
    """Finds whether the shard takes writes; `refuses` is Redis' own reason where it does not."""
    if refuses is None:
        return Finding(node.address, "writes", "ok", "taken")
    remedy = WAYS_OUT.get(refuses.partition(" ")[0], "see the Redis log of this node")
    fact = f"refused ({refuses}): questions are answered, answers not kept, documents refused"
    return Finding(node.address, "writes", "bad", fact, remedy)
