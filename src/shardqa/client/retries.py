"""When a call is made again. All calls of the API may be: doing one twice changes nothing more.

A budget bounds retries over all calls of a client, so that many clients of a server in need don't make it worse: each
success earns a part of a retry, and who has none left fails at once. Pure but for the budget's lock; any thread.
"""

import random
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

BUSY = frozenset({429, 503, 504})  # a place is free soon, a shard comes back, what was computed is kept
FIRST_PAUSE = 0.2  # seconds; doubles with each failure, spread over its upper half


@dataclass(frozen=True, slots=True)
class Retries:
    """Rules for calls that are made again: how often, how long and how many."""

    attempts: int = 4  # of one call, the first included; 1 retries nothing
    seconds: float = 30.0  # of one call: no attempt begins later
    share: float = 0.1  # retries that each call that succeeds earns
    burst: int = 10  # retries that may be saved up, and that a new client has


class Budget:
    """The retries of one client."""

    def __init__(self, rules: Retries) -> None:
        self.rules = rules
        self._left = float(rules.burst)
        self._lock = threading.Lock()

    def earn(self) -> None:
        with self._lock:
            self._left = min(self._left + self.rules.share, float(self.rules.burst))

    def pause(self, attempt: int, seconds: float, retry_after: float | None) -> float | None:
        """Seconds until the next attempt after number `attempt` (from 1) failed; None where there is to be none.

        `retry_after` is what the server asks for.
        """
        wait: float = max(retry_after or 0.0, FIRST_PAUSE * 2 ** (attempt - 1) * random.uniform(0.5, 1.0))
        if attempt >= self.rules.attempts or seconds + wait > self.rules.seconds:
            return None
        with self._lock:
            if self._left < 1:
                return None
            self._left -= 1
        return wait


def is_passing(status: int, headers: Mapping[str, str]) -> bool:
    """Whether a reply may be another one soon. A gateway's own 502 says that the server is away; ours is a fault."""
    return status in BUSY or (status == 502 and not headers.get("content-type", "").startswith("application/problem"))


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds that the header Retry-After names, as a number or a date; None without one."""
    value = headers.get("retry-after", "").strip()
    if not value:
        return None
    if value.isascii() and value.isdigit():
        return float(value)
    try:
        until = parsedate_to_datetime(value)
    except ValueError:
        return None
    return max((until.replace(tzinfo=until.tzinfo or UTC) - datetime.now(UTC)).total_seconds(), 0.0)
