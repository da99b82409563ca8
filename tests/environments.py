"""Virtual environments of their own, for libraries that must not lie beside ours: made once, inside this one.

Such an environment has its packages first and all of ours behind them, so that what both need (torch, pydantic, shardqa
itself) is there without being installed twice.
"""

import subprocess
import sys
import sysconfig
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import pytest


class NotInstallable(Exception):
    """The package index can't be reached, or has no such packages."""


def interpreter_of(name: str, packages: Sequence[str], ours: Literal["behind", "none"] = "behind") -> Path:
    """The Python of the environment `name`; the test skips where its packages can't be installed."""
    try:
        return made(name, packages, ours)
    except NotInstallable as fault:
        pytest.skip(str(fault))


def made(name: str, packages: Sequence[str], ours: Literal["behind", "needed", "none"]) -> Path:
    """The Python of the environment `name`. Raises NotInstallable.

    Our packages are "behind" its own; or "needed", so that pip does not install what they already fulfil; or it has
    "none" of them.
    """
    folder = Path(sys.prefix) / name
    python, complete = folder / "bin" / "python", folder / "complete"
    if complete.exists() and complete.read_text().split() == list(packages):
        return python
    subprocess.run([sys.executable, "-m", "venv", "--clear", "--without-pip", str(folder)], check=True)
    if ours == "needed":
        _put_behind(folder)
    words = [sys.executable, "-m", "pip", "--python", str(python), "install", "-q", "--disable-pip-version-check"]
    done = subprocess.run([*words, *packages], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise NotInstallable(f"{' '.join(packages)} can't be installed: {done.stderr.strip().splitlines()[-1]}")
    if ours == "behind":
        _put_behind(folder)
    complete.write_text("\n".join(packages))
    return python


def _put_behind(folder: Path) -> None:
    (site,) = folder.glob("lib/python*/site-packages")
    # `addsitedir` reads the .pth files there, too: an editable install is one
    (site / "behind.pth").write_text(f"import site; site.addsitedir({sysconfig.get_path('purelib')!r})\n")
