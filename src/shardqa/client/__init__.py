"""Clients of the HTTP API: what a program imports. `Client` blocks, `AsyncClient` is its asyncio twin."""

from shardqa.client.blocking import Client
from shardqa.client.concurrent import AsyncClient
from shardqa.client.faults import RequestFailed, Unreachable
from shardqa.client.retries import Retries

__all__ = ["AsyncClient", "Client", "RequestFailed", "Retries", "Unreachable"]
