"""Commands that functions execute. Any thread but the reading one.

This worker itself answers those named RG.*, since Redis runs none of them inside another command. Those that may have
to wait for functions or for other nodes are refused, as a function that waits for them could wait for itself; triggers
of mode='sync' run in the caller's thread.
"""

from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from redis import ResponseError

from shardqa.worker.calls import CHECK, Command, Rights, argument_bytes, first, parse
from shardqa.worker.gears.pipeline.run import Run
from shardqa.worker.io import Io
from shardqa.worker.threads import Threads

WAITING = frozenset({"RG.PYEXECUTE", "RG.GETRESULTSBLOCKING", "RG._PEER"})
TRIGGERS = frozenset({"RG.TRIGGER", "RG.TRIGGERONKEY"})
REMOVING = frozenset({"RG.UNREGISTER"})  # commands that remove code: their user must be allowed to run DEBUG as well
Answer = Callable[[Run, str, list[bytes]], Coroutine[Any, Any, bytes]]


class InnerCommands:
    def __init__(self, io: Io) -> None:
        self._io = io
        self.answer: Answer | None = None  # of the RG commands, which are built later
        self.trigger: Callable[[Threads, Rights, Sequence[bytes]], Any] | None = None  # likewise

    def execute(self, rights: Rights, command: Command) -> Any:
        """Runs one command. Raises redis.ResponseError, also where these rights do not allow it."""
        if command and argument_bytes(command[0])[:3].upper() == b"RG.":
            return self._answer_rg(rights, command)
        return first(self._io.calls.run(rights, [command]))

    def demand(self, rights: Rights, command: Command) -> None:
        """Checks the rights. Raises redis.ResponseError where they do not allow the command."""
        first(self._io.calls.run(rights, [command], CHECK))

    def _answer_rg(self, rights: Rights, command: Command) -> Any:
        word, *arguments = map(argument_bytes, command)
        name = word.decode("utf-8", "replace").upper()
        if name in WAITING:
            raise ResponseError(
                f"blocking is not allowed: {name} may have to wait, so a function can't execute it; a client can, "
                "and GB().run() runs a pipeline from inside a function"
            )
        self.demand(rights, command)
        if name in REMOVING:  # what Redis asks of a client that sends it
            self.demand(rights, ("DEBUG", "HELP"))
        threads = self._io.threads
        assert self.answer is not None, "functions run after the worker is built"
        if name in TRIGGERS and self.trigger is not None:
            return self.trigger(threads, rights, [word, *arguments])
        answering = self.answer(Run(threads, rights), name, arguments)
        reply = _without_waiting(answering, name) if threads.in_loop() else threads.wait(answering)
        return first(parse(reply, 1))


def _without_waiting(answering: Coroutine[Any, Any, bytes], name: str) -> bytes:
    """Returns the reply of a coroutine that must not wait: the loop, which calls this, can't wait for itself."""
    try:
        answering.send(None)
    except StopIteration as end:
        return bytes(end.value)
    answering.close()
    raise ResponseError(f"{name} has to wait here; execute it in a plain function, not in a coroutine")
