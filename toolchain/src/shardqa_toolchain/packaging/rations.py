"""A process given a share of one processor, as platforms give in proportion to memory.

By a quota of the kernel's scheduler where a control group (version 2) may be made, which is what platforms do; else by
stopping and continuing the process in turns, which is coarser.
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
def rationed(pid: int, share: float, cgroups: Path = CGROUPS) -> Iterator[str]:
    """Holds a process to a share of a processor, and tells how: "quota", "stop and go", or "none" from 1 on."""
    if share >= 1:
        yield "none"
    elif group := _group(pid, share, cgroups):
        try:
            yield "quota"
        finally:
            with contextlib.suppress(OSError):  # the process may have ended; an empty group goes with the machine
                (cgroups / "cgroup.procs").write_text(str(pid))
                group.rmdir()
    else:
        ended = threading.Event()
        turns = threading.Thread(target=_take_turns, args=(pid, share, ended), daemon=True)
        turns.start()
        try:
            yield "stop and go"
        finally:
            ended.set()
            turns.join()


def _group(pid: int, share: float, cgroups: Path) -> Path | None:
    """A control group with a quota that holds the process; None where none may be made."""
    group = cgroups / f"shardqa-{pid}"
    try:
        group.mkdir()
    except OSError:
        return None
    try:
        for name, value in {"cpu.max": f"{PERIOD * share * 1e6:.0f} {PERIOD * 1e6:.0f}", "cgroup.procs": pid}.items():
            with (group / name).open("r+") as file:  # what the kernel does not offer is not made
                file.write(str(value))
    except OSError:
        with contextlib.suppress(OSError):
            group.rmdir()
        return None
    return group


def _take_turns(pid: int, share: float, ended: threading.Event) -> None:
    with contextlib.suppress(ProcessLookupError):
        while not ended.is_set():
            os.kill(pid, signal.SIGCONT)
            time.sleep(PERIOD * share)
            os.kill(pid, signal.SIGSTOP)
            time.sleep(PERIOD * (1 - share))
        os.kill(pid, signal.SIGCONT)
