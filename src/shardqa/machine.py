"""The machine under a process: what its processor is, and memory given back to it."""

import ctypes
import os
import platform
from dataclasses import dataclass
from pathlib import Path

CPUINFO = Path("/proc/cpuinfo")
MALLOC = ((-8, 1), (-3, 128 * 1024), (-1, 128 * 1024))
"""glibc's mallopt: one heap; larger blocks, and more free bytes at its end, go back. It raises both itself if unset."""


@dataclass(frozen=True, slots=True)
class Processor:
    name: str  # as /proc/cpuinfo has it, else the architecture
    flags: frozenset[str] | None  # what it says that it can do; None where it does not say


def processor() -> Processor:
    """The first processor of /proc/cpuinfo; its architecture alone where there is no such file."""
    try:
        text = CPUINFO.read_text(encoding="utf-8", errors="replace")
    except OSError:
        text = ""
    entries: dict[str, str] = {}
    for line in text.splitlines():
        name, _, value = line.partition(":")
        entries.setdefault(name.strip(), value.strip())
    flags = frozenset(entries["flags"].split()) if "flags" in entries else None
    return Processor(entries.get("model name") or platform.machine() or "unknown processor", flags)


def label() -> str:
    """'2 cores of Intel(R) Xeon(R)': what a figure was measured on."""
    return f"{len(os.sched_getaffinity(0))} cores of {processor().name}"


def release_freed() -> None:
    """Give memory that is freed but kept by the allocator back to the system; a no-op where libc is not glibc.

    After a model is loaded, glibc keeps what its file took while it was parsed.
    """
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


def keep_little_freed() -> None:
    """Have the allocator give freed memory back to the system by itself; a no-op where libc is not glibc.

    Else each thread has a heap, and blocks as large as any that was freed once come from it and stay.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", lambda parameter, value: 0)
    for parameter, value in MALLOC:
        mallopt(parameter, value)
