"""A typed client of the AI.* commands: numpy arrays in, numpy arrays out, on one node or a cluster.

`Client` blocks, `AsyncClient` is its asyncio twin. See docs/client-ai.md.
"""

from shardqa.tensors import BadTensor
from shardqa.worker.client.blocking import ModelClient as Client
from shardqa.worker.client.calls import ModelStatistics, StoredModel, StoredScript
from shardqa.worker.client.concurrent import AsyncModelClient as AsyncClient
from shardqa.worker.client.faults import (
    AiFault,
    BackendUnavailable,
    BadCall,
    MemoryIsFull,
    ModelRefused,
    ModuleMissing,
    NoSuchModel,
    NoSuchScript,
    NoSuchTensor,
    NotPermitted,
    RunFailed,
    RunTimedOut,
    ShardAway,
    ShardBusy,
    WrongKind,
)

__all__ = [
    "AiFault",
    "AsyncClient",
    "BackendUnavailable",
    "BadCall",
    "BadTensor",
    "Client",
    "MemoryIsFull",
    "ModelRefused",
    "ModelStatistics",
    "ModuleMissing",
    "NoSuchModel",
    "NoSuchScript",
    "NoSuchTensor",
    "NotPermitted",
    "RunFailed",
    "RunTimedOut",
    "ShardAway",
    "ShardBusy",
    "StoredModel",
    "StoredScript",
    "WrongKind",
]
