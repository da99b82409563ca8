"""The shards' functions: registers them on every master, as one session that the module keeps and replays.

The session's code is two lines that import the functions, so a node that starts with a newer package runs the newer
functions without being told.
"""

import asyncio
import json
from typing import Any

from redis.asyncio.cluster import ClusterNode

from shardqa.engine import Engine
from shardqa.errors import ShardFailed
from shardqa.loader.retry import retry

SESSION = "shardqa"
CODE = "from shardqa.gears_functions.registration import register\nregister(GearsBuilder, runtime, override_reply)\n"
PATIENCE = 90.0  # seconds for workers that still start: importing their libraries takes some, more on a busy machine


async def register(engine: Engine, force: bool = False) -> list[str]:
    """Registers the functions on every master that lacks them (on all with `force`); returns the masters it changed.

    Waits for workers that still start. Raises ClusterUnavailable, AnswerTimeout, ShardFailed.
    """
    nodes = engine.masters.nodes()
    changed = await asyncio.gather(*(_register_on(engine, node, force) for node in nodes))
    return [str(node.name) for node, is_new in zip(nodes, changed, strict=True) if is_new]


async def tag(engine: Engine, node: ClusterNode) -> str | None:
    """The hash tag of a master's shard; None where the functions are not registered."""
    try:
        reply = await retry(lambda: engine.masters.on(node, "RG.TRIGGER", "Corpora"), PATIENCE)
    except ShardFailed:
        return None
    return str(json.loads(_record(reply))["tag"])


async def _register_on(engine: Engine, node: ClusterNode, force: bool) -> bool:
    if not force and await tag(engine, node) is not None:
        return False
    command = ("RG.PYEXECUTE", CODE, "ID", SESSION, "UPGRADE", "DESCRIPTION", "question answering")
    await retry(lambda: engine.masters.on(node, *command), PATIENCE)
    return True


def _record(reply: Any) -> str | bytes:
    record = reply[0] if isinstance(reply, list) else reply
    assert isinstance(record, str | bytes), f"Corpora replied {type(record).__name__}, not text"
    return record
