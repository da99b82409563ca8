"""The machine that a bundle is made for: which wheels run there."""

import platform
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from typing import Self

from shardqa.errors import SetupError

# Lambda's Python runtimes and the C library of their system: Amazon Linux 2, from 3.12 on Amazon Linux 2023.
LAMBDA_GLIBC = {"3.11": (2, 26), "3.12": (2, 34), "3.13": (2, 34), "3.14": (2, 34)}

MACHINES = ("x86_64", "aarch64")

OLDEST_MINOR = 5  # the first glibc 2 that a manylinux platform names

# Older names of manylinux platforms (PEP 600).
LEGACY_PLATFORMS = {"manylinux2014": (2, 17), "manylinux2010": (2, 12), "manylinux1": (2, 5)}

_ASK = "import platform; print('.'.join(platform.python_version_tuple()[:2]), platform.machine())"


@dataclass(frozen=True, slots=True)
class Target:
    """Python, C library and processor of a machine."""

    python: str = "3.12"  # major and minor version
    glibc: tuple[int, int] = LAMBDA_GLIBC["3.12"]
    machine: str = "x86_64"

    @classmethod
    def of(cls, python: str, machine: str, glibc: str | None = None) -> Self:
        """Returns Lambda's runtime of this Python, or the machine with a ``glibc`` like "2.36". Raises SetupError."""
        if machine not in MACHINES:
            raise SetupError(f"machine {machine!r} is unknown; choose one of {', '.join(MACHINES)}")
        if python not in LAMBDA_GLIBC:
            raise SetupError(f"Python {python!r} is no runtime of Lambda; choose one of {', '.join(LAMBDA_GLIBC)}")
        if glibc is None:
            return cls(python, LAMBDA_GLIBC[python], machine)
        if not re.fullmatch(r"2\.\d{1,3}", glibc):
            raise SetupError(f"glibc {glibc!r} is no version; write it as 2.36")
        return cls(python, (2, int(glibc[2:])), machine)

    def platforms(self) -> list[str]:
        """The wheel platforms that run there, best first."""
        manylinux = [f"manylinux_2_{minor}_{self.machine}" for minor in range(self.glibc[1], OLDEST_MINOR - 1, -1)]
        legacy = [f"{name}_{self.machine}" for name, glibc in LEGACY_PLATFORMS.items() if glibc <= self.glibc]
        return manylinux + legacy

    def __str__(self) -> str:
        return f"Python {self.python}, glibc {self.glibc[0]}.{self.glibc[1]}, {self.machine}"


def interpreter(target: Target, path: str | None = None) -> str | None:
    """Returns a Python on this machine of the target's version and processor; None where there is none.

    Raises SetupError when ``path`` is given and is not such a one.
    """
    own = (target.python, target.machine)
    if path is None:
        places = (sys.executable, shutil.which(f"python{target.python}"))
        return next((place for place in places if place is not None and _described_by(place) == own), None)
    if _described_by(path) != own:
        description = " ".join(_described_by(path)) or "nothing"
        raise SetupError(f"{path} says that it is {description}, {' '.join(own)} is needed; name another --interpreter")
    return path


def is_this_machine(target: Target) -> bool:
    """Whether the Python that runs this is of the target's version and processor."""
    return (f"{sys.version_info.major}.{sys.version_info.minor}", platform.machine()) == (target.python, target.machine)


def _described_by(path: str) -> tuple[str, ...]:
    """Returns an interpreter's version and machine; nothing when it does not run, as a shim of an absent version."""
    try:
        process = subprocess.run([path, "-I", "-c", _ASK], capture_output=True, text=True, check=False)
    except OSError:
        return ()
    return tuple(process.stdout.split())
