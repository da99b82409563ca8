"""What a process does about its own memory."""

import ctypes


def release_freed() -> None:
    """Give memory that is freed but kept by the allocator back to the system; a no-op where libc is not glibc.

    After a model is loaded, glibc keeps what its file took while it was parsed.
    """
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
