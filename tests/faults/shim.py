"""The preload shim (shim.c): built once a test run, steered through a page of shared memory."""

import errno
import mmap
import os
import struct
import subprocess
from pathlib import Path

FIELDS = ("writes", "fail_at", "failing", "error", "seconds", "syncs", "names")


def build(folder: Path) -> Path:
    library = folder / "shim.so"
    source = Path(__file__).with_name("shim.c")
    flags = ["-std=gnu11", "-O1", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC"]
    subprocess.run(["cc", *flags, "-o", str(library), str(source), "-ldl"], check=True)
    return library


class Shim:
    """Faults that one or more processes meet. `files`: only paths that hold one of them (a|b) count."""

    def __init__(self, folder: Path, library: Path, files: str) -> None:
        self._path, self._library, self._files = folder / "page", library, files
        if not self._path.exists():  # else a process has it already
            self._path.write_bytes(bytes(mmap.PAGESIZE))
        with self._path.open("r+b") as file:
            self._page = mmap.mmap(file.fileno(), mmap.PAGESIZE)

    @property
    def environment(self) -> dict[str, str]:
        return {"LD_PRELOAD": str(self._library), "SHIM_PAGE": str(self._path), "SHIM_FILES": self._files}

    def python(self, path: Path, interpreter: str) -> Path:
        """A program that is this Python under the shim: the module gives its worker an environment of its own."""
        exports = "".join(f"export {name}='{value}'\n" for name, value in self.environment.items())
        path.write_text(f'#!/bin/sh\n{exports}exec {interpreter} "$@"\n')
        path.chmod(0o755)
        return path

    def _set(self, **values: int) -> None:
        for name, value in values.items():
            struct.pack_into("<q", self._page, 8 * FIELDS.index(name), value)

    def _get(self, name: str) -> int:
        return int(struct.unpack_from("<q", self._page, 8 * FIELDS.index(name))[0])

    @property
    def writes(self) -> int:
        """The number of writes that could have failed, so far."""
        return self._get("writes")

    @property
    def failed(self) -> bool:
        """Whether the write that shall fail has come."""
        return 0 < self._get("fail_at") <= self.writes

    def fail(
        self, number: int, error: int = errno.ENOSPC, times: int = 1, syncs: bool = False, names: bool = False
    ) -> None:
        """The n-th write from now, and so many; `syncs`: fsync counts as one; `names`: rename and linkat do."""
        self._set(error=error, failing=times, syncs=int(syncs), names=int(names))
        self._set(fail_at=self.writes + number)

    def count(self, syncs: bool = False, names: bool = False) -> int:
        """The writes so far; from now on these count as well."""
        self._set(syncs=int(syncs), names=int(names))
        return self.writes

    def heal(self) -> None:
        self._set(fail_at=0)

    def step_clock(self, seconds: int) -> None:
        self._set(seconds=seconds)


def environment(shim: Shim) -> dict[str, str]:
    return {**os.environ, **shim.environment}
