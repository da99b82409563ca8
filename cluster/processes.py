"""Processes known by pid and start time, so that a reused pid is never taken for one of ours.

Only processes whose identity was recorded when they were started are ever signalled.
"""

import os
import select
import signal
from dataclasses import dataclass
from pathlib import Path

STOP_SECONDS = 15.0  # Redis waits up to 10 s for lagging replicas before it exits


@dataclass(frozen=True, slots=True)
class ProcessId:
    pid: int
    started: int  # clock ticks between boot and the start of the process (/proc/<pid>/stat, field 22)


def identify(pid: int) -> ProcessId | None:
    """Returns the identity of a running process; None for none and for a zombie."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return None
    fields = stat.rpartition(")")[2].split()  # the name before ")" may hold blanks
    if fields[0] in "ZX":
        return None
    return ProcessId(pid, int(fields[19]))


def alive(process: ProcessId) -> bool:
    return identify(process.pid) == process


def stop(processes: list[ProcessId], seconds: float = STOP_SECONDS) -> list[ProcessId]:
    """Asks all of them to end at once (SIGTERM), waits, then kills the rest. Returns those that had to be killed."""
    descriptors = [(p, fd) for p in processes if (fd := _pidfd(p)) is not None]
    try:
        for _, fd in descriptors:
            _signal(fd, signal.SIGTERM)
        late = [p for p, fd in descriptors if not _wait(fd, seconds)]
        for p, fd in descriptors:
            if p in late:
                _signal(fd, signal.SIGKILL)
                _wait(fd, seconds)
        return late
    finally:
        for _, fd in descriptors:
            os.close(fd)


def kill(process: ProcessId) -> None:
    """Sends SIGKILL, and waits until the process is gone."""
    fd = _pidfd(process)
    if fd is None:
        return
    try:
        _signal(fd, signal.SIGKILL)
        _wait(fd, STOP_SECONDS)
    finally:
        os.close(fd)


def _pidfd(process: ProcessId) -> int | None:
    """Opens a handle of the process, then checks its identity: so the handle can't be another's."""
    try:
        fd = os.pidfd_open(process.pid)
    except ProcessLookupError:
        return None
    if not alive(process):
        os.close(fd)
        return None
    return fd


def _signal(fd: int, number: signal.Signals) -> None:
    try:
        signal.pidfd_send_signal(fd, number)
    except ProcessLookupError:
        return  # it ended by itself meanwhile


def _wait(fd: int, seconds: float) -> bool:
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    return bool(poll.poll(seconds * 1000))
