"""shardqa: extractive question answering inside Redis Cluster."""

__version__ = "0.1.0"
