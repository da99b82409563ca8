"""The client that blocks. tools/blocking_clients.py generates it from concurrent.py: edit that one."""

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from time import sleep
from typing import Any, Self, TypeVar, Unpack

from redis import Redis, RedisCluster
from redis.client import NEVER_DECODE
from redis.exceptions import AskError, MovedError, RedisError

from shardqa import streaming
from shardqa.errors import BadModel
from shardqa.tensors import Array
from shardqa.worker.client import calls
from shardqa.worker.client.calls import (
    AiCall,
    Key,
    ModelOptions,
    ModelStatistics,
    ScriptArguments,
    StoredModel,
    StoredScript,
)
from shardqa.worker.client.faults import ShardAway, explained
from shardqa.worker.client.graph import OperationGraph, Results

T = TypeVar("T")


class Shards:
    """A node, or the shards of a cluster, with what sends a command where its key is."""

    def __init__(self, redis: Redis | RedisCluster) -> None:
        self.redis: Any = redis  # redis-py types its commands, not execute_command
        self._clustered = isinstance(redis, RedisCluster)

    def everywhere(self, call: AiCall[T]) -> list[T]:
        """Sends a command to every shard, one after another."""
        nodes = list(self.redis.get_primaries()) if self._clustered else [None]
        return [self._on(node, call) for node in nodes]

    def call(self, call: AiCall[T]) -> T:
        for pause in (*calls.PAUSES, None):
            try:
                return self._on(self._node_of(call), call)
            except ShardAway:
                if pause is None or not call.again:
                    raise
                sleep(pause)
                self._look_anew()
        raise AssertionError("the last try has no pause")

    def _node_of(self, call: AiCall[Any]) -> Any:
        if not self._clustered:
            return None
        return self.redis.get_random_node() if call.key is None else self.redis.get_node_from_key(call.key)

    def _look_anew(self) -> None:
        """Learns where slots are now; a node that can't be asked is tried again with the command itself."""
        if self._clustered:
            with suppress(RedisError, OSError):
                self.redis.nodes_manager.initialize()

    def _on(self, node: Any, call: AiCall[T]) -> T:
        target = {} if node is None else {"target_nodes": node}
        try:
            if call.streamed:
                return call.parse(self._stream(node, call.words))
            reply = self.redis.execute_command(*call.words, **target, **{NEVER_DECODE: True})
        except (RedisError, OSError, BadModel) as error:
            raise explained(error, call.refused) from error
        return call.parse(reply)

    def _stream(self, node: Any, words: Sequence[calls.Word]) -> Any:
        asking = False
        for _ in range(calls.REDIRECTS):
            try:
                return streaming.exchange_through(self.redis, node, words, asking)
            except AskError as error:  # MovedError is one
                asking = not isinstance(error, MovedError)
                node = self.redis.get_node(error.host, error.port) if self._clustered else None
                if node is None:
                    raise
        return streaming.exchange_through(self.redis, node, words, asking)


class ModelClient:
    """Wraps a redis-py client of your own, on a node or a cluster, or from `connect`. Threads may share it."""

    def __init__(self, redis: Redis | RedisCluster) -> None:
        self._shards = Shards(redis)

    @classmethod
    def connect(cls, url: str = "redis://localhost:6379", **options: Any) -> Self:
        """A client of the node at `url`, or of the whole cluster that it belongs to. Raises ShardAway, NotPermitted.

        `options` are redis-py's.
        """
        try:
            node: Any = Redis.from_url(url, **options)
            info = node.info("cluster")
            if not info.get("cluster_enabled"):
                return cls(node)
            node.close()
            return cls(RedisCluster.from_url(url, **options))
        except (RedisError, OSError) as error:
            raise explained(error, ShardAway) from error

    def close(self) -> None:
        self._shards.redis.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def tensor_set(self, key: Key, array: Array) -> None:
        """AI.TENSORSET. Raises BadTensor."""
        self._shards.call(calls.tensor_set(key, array))

    def tensor_get(self, key: Key) -> Array:
        """AI.TENSORGET: a read-only array."""
        return self._shards.call(calls.tensor_get(key))

    def model_store(self, key: Key, backend: str, file: bytes | Path, **options: Unpack[ModelOptions]) -> None:
        """AI.MODELSTORE: a file's bytes, or its path."""
        self._shards.call(calls.model_store(key, backend, file, **options))

    def model_get(self, key: Key, *, blob: bool = False) -> StoredModel:
        """AI.MODELGET; with its file where `blob` says so."""
        return self._shards.call(calls.model_get(key, blob=blob))

    def model_delete(self, key: Key) -> None:
        """AI.MODELDEL."""
        self._shards.call(calls.delete("AI.MODELDEL", key))

    def model_execute(
        self, key: Key, inputs: Sequence[Key], outputs: Sequence[Key], *, timeout_ms: int | None = None
    ) -> None:
        """AI.MODELEXECUTE on tensors that are keys; `timeout_ms`: how long it may wait and run."""
        self._shards.call(calls.model_execute(key, inputs, outputs, timeout_ms))

    def run(self, key: Key, arrays: Sequence[Array], outputs: int = 1, *, timeout_ms: int | None = None) -> list[Array]:
        """Runs a model on arrays in one round trip; no tensor becomes a key."""
        return self._shards.call(calls.run(key, arrays, outputs, timeout_ms))

    def model_scan(self) -> list[tuple[str, str]]:
        """AI._MODELSCAN: (key, tag) of every model on every shard."""
        shards = self._shards.everywhere(calls.scan("AI._MODELSCAN"))
        return [entry for entries in shards for entry in entries]

    def script_store(
        self, key: Key, source: str, entry_points: Sequence[str], *, device: str = "CPU", tag: str = ""
    ) -> None:
        """AI.SCRIPTSTORE."""
        self._shards.call(calls.script_store(key, source, entry_points, device=device, tag=tag))

    def script_get(self, key: Key) -> StoredScript:
        """AI.SCRIPTGET."""
        return self._shards.call(calls.script_get(key))

    def script_delete(self, key: Key) -> None:
        """AI.SCRIPTDEL."""
        self._shards.call(calls.delete("AI.SCRIPTDEL", key))

    def script_execute(
        self, key: Key, function: str, *, timeout_ms: int | None = None, **arguments: Unpack[ScriptArguments]
    ) -> None:
        """AI.SCRIPTEXECUTE. It is never sent twice: it may have changed keys."""
        self._shards.call(calls.script_execute(key, function, timeout_ms=timeout_ms, **arguments))

    def script_scan(self) -> list[tuple[str, str]]:
        """AI._SCRIPTSCAN: (key, tag) of every script on every shard."""
        shards = self._shards.everywhere(calls.scan("AI._SCRIPTSCAN"))
        return [entry for entries in shards for entry in entries]

    def graph(
        self,
        *,
        load: Sequence[Key] = (),
        persist: Sequence[Key] = (),
        routing: Key | None = None,
        timeout_ms: int | None = None,
        read_only: bool = False,
    ) -> OperationGraph[Results]:
        """AI.DAGEXECUTE: add operations, then `run` it."""
        return OperationGraph(self._shards.call, load, persist, routing, timeout_ms, read_only)

    def info(self, key: Key) -> ModelStatistics:
        """AI.INFO of a model or script."""
        return self._shards.call(calls.info(key))

    def reset_info(self, key: Key) -> None:
        """AI.INFO … RESETSTAT."""
        self._shards.call(calls.reset_info(key))

    def config_get(self, name: str) -> str | int | None:
        """AI.CONFIG GET of one node; None for what it does not know."""
        return self._shards.call(calls.config_get(name))

    def config_set(self, name: str, value: calls.Word) -> None:
        """AI.CONFIG on every shard: MODEL_CHUNK_SIZE or BACKENDSPATH."""
        self._shards.everywhere(calls.config_set(name, value))
