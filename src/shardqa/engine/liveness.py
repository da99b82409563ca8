"""Failure detector: a node that stops answering PING counts as down until it answers again.

To a question that waits, a node that hangs looks like one that computes. But Redis answers PING while its worker
computes, so a node that does not answer it is stopped, gone or cut off. One asyncio loop owns a Liveness.
"""

import asyncio
from collections.abc import Coroutine
from typing import Any

from redis.asyncio.cluster import ClusterNode
from redis.exceptions import RedisError

PATIENCE_SECONDS = 1.0  # without a reply before a node is pinged, and before a ping counts as lost
PING_SECONDS = 0.5  # between two pings of a node that is down
SILENT = f"no answer to PING within {PATIENCE_SECONDS:g} s"


class Unresponsive(Exception):
    """The node answers nothing, not even PING."""


class Liveness:
    def __init__(self) -> None:
        self._pings: dict[str, asyncio.Task[bool]] = {}  # by node: one on its way serves all that wait
        self._down: dict[str, asyncio.Task[None]] = {}  # by node, whatever pings it until it answers again

    async def guard(self, node: ClusterNode, call: Coroutine[Any, Any, Any]) -> Any:
        """The result of `call`, a command on the node. Raises Unresponsive, and what the call raises.

        Most calls are answered before anybody looks at their node, so only one that waits gets a task that does.
        """
        patience, looks = asyncio.timeout(None), list[asyncio.Task[None]]()
        timer = asyncio.get_running_loop().call_later(
            PATIENCE_SECONDS, lambda: looks.append(asyncio.create_task(self._look(node, patience)))
        )
        try:
            if str(node.name) in self._down:
                raise Unresponsive(SILENT)
            async with patience:
                return await call
        except TimeoutError as error:
            raise Unresponsive(SILENT) if patience.expired() else error from None
        finally:
            call.close()  # where it has not begun
            timer.cancel()
            for look in looks:
                look.cancel()

    async def _look(self, node: ClusterNode, patience: asyncio.Timeout) -> None:
        """Ends the patience with a node once it answers no PING."""
        while str(node.name) not in self._down:
            if await self._answers(node):
                await asyncio.sleep(PATIENCE_SECONDS)
            else:
                self._mark_down(node)
        patience.reschedule(asyncio.get_running_loop().time())

    def close(self) -> None:
        """Cancels its pings, and its looks at nodes that are down."""
        for task in (*self._pings.values(), *self._down.values()):
            task.cancel()

    async def _answers(self, node: ClusterNode) -> bool:
        name = str(node.name)
        if name not in self._pings:
            self._pings[name] = asyncio.create_task(_ping(node))
            self._pings[name].add_done_callback(lambda _: self._pings.pop(name))
        return await asyncio.shield(self._pings[name])

    def _mark_down(self, node: ClusterNode) -> None:
        name = str(node.name)
        if name not in self._down:
            self._down[name] = asyncio.create_task(_until_it_answers(node))
            self._down[name].add_done_callback(lambda _: self._down.pop(name))


async def _ping(node: ClusterNode) -> bool:
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            await node.execute_command("PING")
    except TimeoutError:
        return False
    except (RedisError, OSError):
        return True  # a refusal is an answer: the command itself will tell
    return True


async def _until_it_answers(node: ClusterNode) -> None:
    while True:
        if await _ping(node):
            return
        await asyncio.sleep(PING_SECONDS)
