"""One call under way: what each attempt brought, and how long to wait before the next. Both clients drive it."""

from time import perf_counter
from typing import Any

import httpx2

from shardqa.client import faults, retries
from shardqa.client.calls import Call
from shardqa.client.retries import Budget
from shardqa.errors import ShardqaError


class Exchange:
    def __init__(self, call: Call[Any], budget: Budget, url: str) -> None:
        self._call = call
        self._budget = budget
        self._url = url
        self._attempt = 1
        self._began = perf_counter()

    def is_done(self, reply: httpx2.Response) -> bool:
        """Whether this reply is the call's."""
        is_success = reply.is_success or (self._call.gone_is_done and self._attempt > 1 and reply.status_code == 404)
        if is_success:
            self._budget.earn()
        return is_success

    def pause_after_reply(self, reply: httpx2.Response) -> float:
        """Seconds until the next attempt. Raises the reply's fault where there is to be none."""
        fault = faults.fault_of(reply)
        if not retries.is_passing(reply.status_code, reply.headers):
            raise fault
        return self._pause(fault, retries.retry_after(reply.headers))

    def pause_after_error(self, error: httpx2.TransportError) -> float:
        """Seconds until the next attempt where no reply came. Raises Unreachable where there is to be none."""
        fault = faults.unreachable(self._url, error)
        if isinstance(error, httpx2.UnsupportedProtocol | httpx2.LocalProtocolError):
            raise fault
        return self._pause(fault, None)

    def _pause(self, fault: ShardqaError, retry_after: float | None) -> float:
        pause = self._budget.pause(self._attempt, perf_counter() - self._began, retry_after)
        if pause is None:
            raise fault
        self._attempt += 1
        return pause
