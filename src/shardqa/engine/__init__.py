"""The engine: what asks the shards and puts documents on them, for the API, the command line and the loader."""

from shardqa.engine.engine import Engine

__all__ = ["Engine"]
