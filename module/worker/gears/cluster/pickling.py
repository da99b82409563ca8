"""How functions and records travel between the workers of a cluster: by cloudpickle, as RedisGears does it.

A pickle runs code when it is read, so it is read only from a peer that proved to be one (peers.py). What a script
defines travels by value, with the variables its functions use; packages travel by name. What the worker gives to
scripts (`execute`, `GB`, `hashtag`, ...) travels as its name and becomes the receiving worker's own.
"""

from __future__ import annotations

import functools
import io
import pickle
from collections.abc import Callable
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from shardqa.module.worker.gears.registry.sessions import Session

SESSION = ""  # the name under which a session itself travels
SHARD = "."

_receiving: ContextVar[Session] = ContextVar("receiving")


class CannotTravel(Exception):
    """Something that can't be pickled, such as a lock or a connection."""


def _names(session: Session) -> dict[int, str]:
    """id of what the worker gives to this session -> its name."""
    names = {id(value): name for name, value in session.names.items() if callable(value)}
    return names | {id(session): SESSION, id(session.shard): SHARD, id(session.names["runtime"]): "runtime"}


@functools.cache
def _pickler() -> Any:
    import cloudpickle  # when it is first needed: the worker of a single node never sends a function

    class Pickler(cloudpickle.Pickler):  # type: ignore[misc, no-any-unimported, unused-ignore]
        def __init__(self, file: io.BytesIO, names: dict[int, str]) -> None:
            super().__init__(file, protocol=pickle.HIGHEST_PROTOCOL)
            self._names = names

        def reducer_override(self, obj: Any) -> Any:
            name = self._names.get(id(obj))
            return (_own, (name,)) if name is not None else super().reducer_override(obj)

    return Pickler


def _own(name: str) -> Any:
    """This worker's counterpart, while `unpack` reads."""
    session = _receiving.get()
    if name == SESSION:
        return session
    return session.shard if name == SHARD else session.names[name]


def pack(session: Session, value: Any) -> bytes:
    """Raises CannotTravel, with the reason."""
    file = io.BytesIO()
    try:
        _pickler()(file, _names(session)).dump(value)
    except (pickle.PicklingError, TypeError, AttributeError, ValueError, RecursionError) as error:
        raise CannotTravel(
            f"this can't be sent to the other shards: {error}; make it inside the function, in onRegistered, "
            "or run with mode='async_local'"
        ) from error
    return file.getvalue()


def unpack(session: Session, data: bytes) -> Any:
    """Only for what a proven peer sent. Raises whatever the code in it raises (a package that is missing here, …)."""
    token = _receiving.set(session)
    try:
        return pickle.loads(data)
    finally:
        _receiving.reset(token)


def each(session: Session, records: list[Any], lost: Callable[[BaseException], None]) -> bytes:
    """Records as one pickle; those that can't travel are told to `lost` one by one."""
    try:
        return pack(session, records)
    except CannotTravel:
        kept = []
        for record in records:
            try:
                pack(session, record)
                kept.append(record)
            except CannotTravel as error:
                lost(error)
        return pack(session, kept)
