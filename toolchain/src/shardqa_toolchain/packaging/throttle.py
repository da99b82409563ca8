"""A process given a share of one processor, as Lambda gives in proportion to memory.

By a quota of the kernel's scheduler where a control group may be made (cgroup v2, or v1), which is what Lambda does;
else by stopping and continuing the process in turns, which is coarser.
"""

import contextlib
import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PERIOD = 0.02  # seconds in which the share holds

CGROUPS = Path("/sys/fs/cgroup")


@contextmanager
def throttled(pid: int, share: float, cgroups: Path = CGROUPS) -> Iterator[str]:
    """Hold a process to a share of a processor, above 0 to 1, and tell how: "quota" or "stop and go"."""
    assert 0 < share <= 1, share
    if share == 1:
        yield "none"
        return
    group = _group(pid, share, cgroups)
    if group is None:
        with _stop_and_go(pid, share):
            yield "stop and go"
        return
    try:
        yield "quota"
    finally:
        _leave(pid, group)


def _group(pid: int, share: float, cgroups: Path) -> Path | None:
    """A control group with a quota that holds the process; None where none may be made."""
    period, quota = round(PERIOD * 1e6), round(PERIOD * share * 1e6)
    version_2 = {"cpu.max": f"{quota} {period}"}
    version_1 = {"cpu.cfs_period_us": str(period), "cpu.cfs_quota_us": str(quota)}
    for parent, settings in ((cgroups, version_2), (cgroups / "cpu", version_1)):
        group = parent / f"shardqa-{pid}"
        try:
            group.mkdir()
        except OSError:
            continue
        try:
            for name, value in {**settings, "cgroup.procs": str(pid)}.items():
                if not (group / name).exists():
                    raise FileNotFoundError(name)
                (group / name).write_text(value)
        except OSError:
            _remove(group)
            continue
        return group
    return None


def _leave(pid: int, group: Path) -> None:
    with contextlib.suppress(OSError):  # the process may have ended, and a group is left by ending
        (group.parent / "cgroup.procs").write_text(str(pid))
    _remove(group)


def _remove(group: Path) -> None:
    with contextlib.suppress(OSError):  # an empty group costs nothing, and goes with the machine
        group.rmdir()


@contextmanager
def _stop_and_go(pid: int, share: float) -> Iterator[None]:
    ended = threading.Event()
    turns = threading.Thread(target=_take_turns, args=(pid, share, ended), daemon=True)
    turns.start()
    try:
        yield
    finally:
        ended.set()
        turns.join()


def _take_turns(pid: int, share: float, ended: threading.Event) -> None:
    try:
        while not ended.is_set():
            os.kill(pid, signal.SIGCONT)
            time.sleep(PERIOD * share)
            os.kill(pid, signal.SIGSTOP)
            time.sleep(PERIOD * (1 - share))
        os.kill(pid, signal.SIGCONT)
    except ProcessLookupError:
        return
