"""Threads that functions begin: a thread knows the run that began it, a pool's that of the work it does.

What needs a run (redisAI) so works in them, with the rights of their function, and fails with the module's words once
those have ended. Tasks of the loop have their run from their context (run.py).
"""

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import Context
from typing import Any

from shardqa.worker.gears.pipeline.run import Run, current

RUN = "shardqa_run"  # the attribute of a thread


def current_or_begun_by() -> Run | None:
    """Returns the run of this thread, or the one that began the thread. Any thread."""
    return current() or getattr(threading.current_thread(), RUN, None)


def install() -> None:
    """Has threads note the run that begins them. Once per worker process."""
    threading.Thread.start = _start  # type: ignore[assignment, method-assign]
    ThreadPoolExecutor.submit = _submit  # type: ignore[assignment, method-assign]


_start_thread, _submit_work = threading.Thread.start, ThreadPoolExecutor.submit


def _start(thread: threading.Thread) -> None:
    setattr(thread, RUN, current_or_begun_by())
    _start_thread(thread)


def _submit(pool: ThreadPoolExecutor, function: Callable[..., Any], /, *args: Any, **options: Any) -> Future[Any]:
    run = current_or_begun_by()
    if run is None or isinstance(getattr(function, "__self__", None), Context):  # that has its own
        return _submit_work(pool, function, *args, **options)
    return _submit_work(pool, _work_for, run, function, *args, **options)


def _work_for(run: Run, function: Callable[..., Any], /, *args: Any, **options: Any) -> Any:
    thread = threading.current_thread()
    before = getattr(thread, RUN, None)
    setattr(thread, RUN, run)
    try:
        return function(*args, **options)
    finally:
        setattr(thread, RUN, before)
