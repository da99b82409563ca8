"""Functions and records as they travel between the workers of a cluster: by cloudpickle, as in RedisGears.

A pickle runs code when it is read, so it is read only from a peer that proved to be one (peers.py). What a script
defines travels by value, with the variables its functions use; packages travel by name. What the worker gives to
scripts (`execute`, `GB`, `hashtag`, ...) travels as its name and becomes the receiving worker's own. Where the session
is registered on the receiving shard, a function finds that shard's variables: of those it brings only what is missing.
"""

import base64
import functools
import io
import pickle
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from types import FunctionType
from typing import Any

from shardqa.worker.gears.interpreters.exchange import RECEIVING
from shardqa.worker.gears.registrations.registrations import RegistrationStatistics
from shardqa.worker.gears.sessions.session import Session
from shardqa.worker.threads import Cancelled

SESSION = ""  # the name under which a session itself travels
PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"  # functions travel as its bytecode
MARK = "# shardqa: functions as they travelled: "  # begins the first line of a stored session


class CannotTravel(Exception):
    """The value can't be pickled, as a lock or a connection."""


def _names(session: Session) -> dict[int, str]:
    """Returns the names of objects that the worker gives to this session, by their id()."""
    names = {id(value): name for name, value in session.names.items() if callable(value)}
    return names | {id(session): SESSION, id(session.names["runtime"]): "runtime"}


@functools.cache
def pickler() -> Any:
    import cloudpickle  # when it is first needed: the worker of a single node never sends a function

    class Pickler(cloudpickle.Pickler):  # type: ignore[misc, no-any-unimported, unused-ignore]
        def __init__(self, file: io.BytesIO, session: Session) -> None:
            super().__init__(file, protocol=pickle.HIGHEST_PROTOCOL)
            self._names = _names(session)
            self._globals = session.globals

        def reducer_override(self, obj: Any) -> Any:
            name = self._names.get(id(obj))
            if name is not None:
                return _own, (name,)
            recipe = super().reducer_override(obj)
            if (
                not isinstance(obj, FunctionType)
                or not isinstance(recipe, tuple)
                or obj.__globals__ is not self._globals
            ):
                return recipe
            make, arguments, *more, set_state = recipe
            return (_own_function, (make, *arguments), *more, partial(_add_state, set_state))

    return Pickler


def _own_function(make: Callable[..., FunctionType], *arguments: Any) -> FunctionType:
    """Makes a function of the session's script, with the session's globals on this worker."""
    function, here = make(*arguments), RECEIVING.get().globals
    for name, value in function.__globals__.items():
        here.setdefault(name, value)
    return FunctionType(function.__code__, here, None, None, function.__closure__)


def _add_state(set_state: Callable[[Any, Any], None], function: Any, state: Any) -> None:
    """Sets a function's state; variables that exist stay."""
    here = dict(function.__globals__)
    set_state(function, state)
    function.__globals__.update(here)


def _own(name: str) -> Any:
    """Returns this worker's object of a name, while `unpack` reads."""
    session = RECEIVING.get()
    if name == SESSION:
        return session
    return session.names[name]


def dumped(session: Session, value: Any) -> bytes:
    """Pickles a value. Raises what pickle and the value's own classes raise."""
    file = io.BytesIO()
    pickler()(file, session).dump(value)
    return file.getvalue()


def pack(session: Session, value: Any) -> bytes:
    """Pickles a value. Raises CannotTravel, with the reason."""
    try:
        return dumped(session, value)
    except Cancelled:
        raise
    except BaseException as error:
        why = error if isinstance(error, Exception) else type(error).__name__
        raise CannotTravel(
            f"Error occured when serialized a python callback: this can't be sent to the other shards: {why}; "
            "make it inside the function, in onRegistered, or run with mode='async_local'"
        ) from error


def unpack(session: Session, data: bytes) -> Any:
    """Unpacks bytes that a proven peer sent, and no others.

    Raises the Exception that the code in them raises; CannotTravel for what would end a thread or a task.
    """
    token = RECEIVING.set(session)
    try:
        return pickle.loads(data)
    except (Exception, Cancelled):
        raise
    except BaseException as error:
        raise CannotTravel(f"what came from another shard raised {type(error).__name__} as it was read") from error
    finally:
        RECEIVING.reset(token)


def pack_each(session: Session, records: list[Any], on_loss: Callable[[BaseException], None]) -> bytes:
    """Pickles records, without those that can't travel: `on_loss` gets the error of each."""
    try:
        return pack(session, records)
    except CannotTravel:
        packable = []
        for record in records:
            try:
                pack(session, record)
                packable.append(record)
            except CannotTravel as error:
                on_loss(error)
        return pack(session, packable)


# ---- a session as it travels and as it is stored ----


def pack_session(session: Session) -> bytes:
    """Packs a session before onRegistered runs, which may make objects that can't travel. Raises CannotTravel."""
    fresh = [replace(registration, statistics=RegistrationStatistics()) for registration in session.registrations]
    return pack(session, (fresh, session.on_registered))


def unpack_session(session: Session, functions: bytes) -> None:
    """Gives `session` what `pack_session` packed. Raises whatever the code in it raises."""
    session.registrations, session.on_registered = unpack(session, functions)


def stored_script(functions: bytes, code: str) -> str:
    """Returns the script with its packed functions in a comment as first line: it stays a script of Python."""
    return f"{MARK}{PYTHON} {base64.b85encode(functions).decode()}\n{code}"


def split(code: str) -> tuple[bytes | None, str]:
    """Returns (functions that travelled, or None where this Python can't read them; the script) of a stored session."""
    if not code.startswith(MARK):
        return None, code
    first, _, script = code.partition("\n")
    python, _, functions = first.removeprefix(MARK).partition(" ")
    return (base64.b85decode(functions) if python == PYTHON else None), script
