"""The worker as an application's functions see it: the one file of the worker that these import.

Threading: coroutines run in the worker's one event loop; `changed` and `resync` are awaited there, one at a
time per watch. `hashtag`, `role`, `log` and `stat` may be called from any thread.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

if TYPE_CHECKING:  # a session with a numpy of its own must not meet another one (interpreters)
    from numpy.typing import NDArray

Argument: TypeAlias = bytes | str | int | float
Reply: TypeAlias = Any  # as hiredis decodes it: bytes, int, None, list; a nested error is an exception object


@dataclass(frozen=True, slots=True)
class KeyEvent:
    """A keyspace event of a watched prefix."""

    event: str  # Redis' name: 'hset', 'del', 'expired', …
    key: str  # bytes that are not UTF-8 are kept as surrogates ('surrogateescape')
    type: str  # type of the key after the event: 'hash', 'string', …, 'none' when it is gone
    number: int = 0  # the module keeps it under this one until its function has ended; 0: it does not


class Runtime(Protocol):
    async def call(self, *args: Argument) -> Reply:
        """Runs one Redis command on this node. Raises redis.ResponseError on an error reply.

        With the rights of the client the function runs for; with those of who registered it when it is privileged or
        runs for no client.
        """

    async def calls(self, commands: Sequence[Sequence[Argument]], quiet: bool = False) -> list[Reply | Exception]:
        """Runs several in one tick, in order: replicas and AOF see their writes as one MULTI. Errors are items.

        `quiet`: this session hears no events of what these write, where they run with its rights.
        """

    async def demand(self, *commands: Sequence[Argument]) -> None:
        """Raises redis.ResponseError (NOPERM) unless the client this runs for may run all of these; runs none."""

    async def may(self, commands: Sequence[Sequence[Argument]]) -> list[bool]:
        """Says of each whether the client may run it, for what is only left out."""

    def hashtag(self) -> str:
        """The tag of this shard now (lowest slot it owns, '06S' for slot 0 and outside cluster mode)."""

    def role(self) -> str:
        """'master' or 'replica'."""

    def watch(
        self,
        prefix: str,
        changed: Callable[[Sequence[KeyEvent]], Awaitable[None]],
        resync: Callable[[str], Awaitable[None]],
    ) -> None:
        """Follows keys with this prefix, on masters and replicas alike.

        `changed` gets events in order, batched; `resync(reason)` says that everything may differ (also once
        at the start), so scan. Both are awaited one after another, never at once.
        """

    async def run_model(
        self, key: str, inputs: Mapping[str, NDArray[Any]], outputs: Sequence[str]
    ) -> dict[str, NDArray[Any]]:
        """Runs the model stored at `key`; requests of equal shape that wait are batched on dimension 0.

        Returns all that it gives, by name. Raises redis.ResponseError when there is no such model, it lacks one of
        `outputs`, or it fails.
        """

    async def model_note(self, key: str, name: str) -> str:
        """The note of this name in the ONNX file of the model at `key`. Raises redis.ResponseError: there is none."""

    def model_tag(self, key: str) -> str | None:
        """The TAG of the model stored at `key`; None: there is none, or it is not loaded."""

    def models_above(self, size: int) -> list[str]:
        """Keys of models that lie in files of more bytes."""

    async def copy_model(self, key: str, to: str) -> None:
        """Stores the model at `key` under `to` as well, on that other master that has the slot of `to`.

        Raises redis.ResponseError where there is no such model here, or the other shard does not take it.
        """

    async def peers(self, *args: Argument) -> list[Reply | Exception]:
        """Runs a command on every other master at once, in the order of their slots; a failed one is an exception."""

    def owns(self, key: str) -> bool:
        """Whether the key's slot is this shard's, as far as is known."""

    async def on_owner(self, key: str, *args: Argument) -> Reply:
        """A command on that other master that has the key's slot. Raises redis.ResponseError, also where none has."""

    def progress(self) -> None:
        """Says that a part of a long piece of work is done: the client of this trigger has its whole deadline again."""

    def shown(self, name: str, loads: bool = False) -> AbstractContextManager[None]:
        """The module sees that this is under way: should the worker end, INFO's worker_last_running names it.

        What `loads` may keep the interpreter's lock for seconds, and requests wait instead of being refused.
        """

    def log(self, text: str, level: str = "notice") -> None:
        """A line in the Redis log; level is debug, verbose, notice or warning."""

    def stat(self, name: str, value: int | float | str) -> None:
        """Shows a number in `INFO shardqa`."""
