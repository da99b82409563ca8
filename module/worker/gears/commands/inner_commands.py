"""RG.* commands that functions execute: this worker answers them, since Redis runs none of them inside another command.

Those that may have to wait for functions or for other nodes are refused, as a function that waits for them could wait
for itself. Any thread.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from typing import TYPE_CHECKING, Any

from redis import ResponseError

from shardqa.module.worker.calls import CHECK, Argument, Rights, argument_bytes, first, parse
from shardqa.module.worker.gears.pipeline.run import Run

if TYPE_CHECKING:
    from shardqa.module.worker.shard import Shard

WAITING = frozenset(
    {"RG.PYEXECUTE", "RG.TRIGGER", "RG.TRIGGERONKEY", "RG.GETRESULTSBLOCKING", "RG.UNREGISTER", "RG._PEER"}
)

Answer = Callable[[Run, str, list[bytes]], Coroutine[Any, Any, bytes]]


def is_inner(command: Sequence[Argument]) -> bool:
    return bool(command) and argument_bytes(command[0])[:3].upper() == b"RG."


class InnerCommands:
    def __init__(self) -> None:
        self.answer: Answer | None = None  # of the worker's commands, which come later

    def execute(self, shard: Shard, rights: Rights, command: Sequence[Argument]) -> Any:
        """Raises redis.ResponseError, also where these rights do not allow the command."""
        name, *arguments = map(argument_bytes, command)
        wanted = name.decode("utf-8", "replace").upper()
        if wanted in WAITING:
            raise ResponseError(
                f"{wanted} may have to wait, so a function can't execute it; a client can, and GB().run() runs "
                "a pipeline from inside a function"
            )
        first(shard.calls.run(rights, [command], CHECK))
        assert self.answer is not None, "functions run after the worker is built"
        answering = self.answer(Run(shard.threads, rights), wanted, arguments)
        reply = _without_waiting(answering, wanted) if shard.threads.in_loop() else shard.threads.wait(answering)
        return first(parse(reply, 1))


def _without_waiting(answering: Coroutine[Any, Any, bytes], name: str) -> bytes:
    """For a coroutine that executes, as the loop can't wait for itself."""
    try:
        answering.send(None)
    except StopIteration as end:
        return bytes(end.value)
    answering.close()
    raise ResponseError(f"{name} has to wait here; execute it in a plain function, not in a coroutine")
