"""Functions that run every so many seconds: registerTE, registerTimeEvent in RedisGears.

Each is a registration, so it is kept, replicated and removed as others are; timers.py runs them.
"""

from typing import Any

from shardqa.worker.gears.pipeline.steps import GearsStep, Kind
from shardqa.worker.gears.registrations.registrations import TIMER, Registration
from shardqa.worker.gears.sessions.session import Session


class _Call:
    """A step that calls a function without a record."""

    def __init__(self, callback: Any) -> None:
        self._callback = callback

    def __call__(self, _record: Any) -> Any:
        return self._callback()


def register_timer(session: Session, seconds: Any, callback: Any, key: str | None = None) -> None:
    """Makes `callback` run every so many seconds, until `key` is deleted. Raises TypeError and ValueError."""
    if not callable(callback):
        raise TypeError(f"registerTE: callback must be a function, not {type(callback).__name__}")
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or seconds <= 0:
        raise TypeError(f"registerTE: time argument must be a long or a float above 0, not {seconds!r}")
    steps = (GearsStep(Kind.FOREACH, _Call(callback)),)
    registration = Registration("", session.id, session.user, TIMER, "async_local", None, steps, convert=False)
    registration.prefix, registration.period = key or "", float(seconds)
    registration.id = session.next_id(registration)
    session.register(registration, None)
    if key is not None and session.is_new:
        session.execute(("SET", key, registration.id))
