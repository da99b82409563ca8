"""Extractive question answering inside Redis Cluster."""

import os
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from shardqa.client import AsyncClient as AsyncClient
    from shardqa.client import Client as Client
    from shardqa.config import Settings as Settings
    from shardqa.engine import Engine as Engine
    from shardqa.errors import ShardqaError as ShardqaError
    from shardqa.models.pipeline import pipeline as pipeline

__version__ = "0.2.0"

# onnxruntime >= 1.29 keeps a device id under ~/.cache and reports to its maker, unless this is set before it is loaded.
# Whatever of ours loads it has imported this package first. Set whatever it was: that nothing calls home is a promise.
os.environ["ORT_DISABLE_TELEMETRY"] = "1"

# What programs import from here, and where it lies. Loaded when asked for: the worker, which imports this package, too,
# needs none of it.
PUBLIC = {
    "AsyncClient": "shardqa.client",
    "Client": "shardqa.client",
    "Engine": "shardqa.engine",
    "Settings": "shardqa.config",
    "ShardqaError": "shardqa.errors",
    "pipeline": "shardqa.models.pipeline",
}
__all__ = [*PUBLIC, "__version__"]


def __getattr__(name: str) -> Any:
    if name not in PUBLIC:
        raise AttributeError(f"module 'shardqa' has no attribute {name!r}")
    try:
        return getattr(import_module(PUBLIC[name]), name)
    except ModuleNotFoundError as fault:
        from shardqa import extras

        extra = extras.OF_PUBLIC.get(fault.name or "")
        if extra is None:
            raise
        way_out = extras.remedy(extra)
        raise ModuleNotFoundError(f"shardqa.{name} needs {fault.name}; {way_out}", name=fault.name) from None


def __dir__() -> list[str]:
    return sorted([*globals(), *PUBLIC])
