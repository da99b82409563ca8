"""A typed client of the AI.* commands: numpy arrays in, numpy arrays out, on one node or a cluster.

`Client` blocks, `AsyncClient` is its asyncio twin. See docs/client-ai.md.
"""

from shardqa.ai.blocking import ModelClient as Client
from shardqa.ai.calls import ModelStatistics, StoredModel, StoredScript
from shardqa.ai.concurrent import AsyncModelClient as AsyncClient
from shardqa.ai.faults import (
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
from shardqa.tensors import BadTensor

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
