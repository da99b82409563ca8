"""Commands that functions run together, and whether Redis stores anything now."""

from collections.abc import Sequence

from redis import ResponseError

from shardqa import keys
from shardqa.errors import ShardFailed
from shardqa.transient import is_transient, is_write_refusal
from shardqa.worker.runtime import Argument, Reply, Runtime


async def write(runtime: Runtime, commands: Sequence[Sequence[Argument]]) -> list[Reply]:
    """Runs commands in one tick. Raises ShardFailed for the first that failed; Redis' own error if it will pass."""
    replies = await runtime.calls(commands)
    raise_first(commands, replies)
    return replies


def raise_first(commands: Sequence[Sequence[Argument]], replies: Sequence[Reply | Exception]) -> None:
    """Raises the first error among the replies, as `write` does."""
    for command, reply in zip(commands, replies, strict=True):
        if isinstance(reply, Exception):
            if is_transient(reply):
                raise reply
            raise ShardFailed(f"{command[0]!s} {str(command[1])[:120]!r} failed: {reply}; see the shard's log")


async def refusal(runtime: Runtime) -> ResponseError | None:
    """Returns the error with which Redis stores nothing now; None where it does. Changes nothing."""
    (reply,) = await runtime.calls([("LPUSHX", keys.never(runtime.hashtag()), "")])
    return reply if isinstance(reply, ResponseError) and is_write_refusal(reply) else None
