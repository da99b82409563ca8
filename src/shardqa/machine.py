"""The machine under a process: what its processor is, and memory given back to it."""

import ctypes
import os
import platform
from dataclasses import dataclass
from pathlib import Path

CPUINFO = Path("/proc/cpuinfo")


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
