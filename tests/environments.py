"""Virtual environments of their own, for libraries that must not lie beside ours: made once, inside this one.

Such an environment has its packages first and all of ours behind them, so that what both need (torch, pydantic, shardqa
itself) is there without being installed twice.
"""

import subprocess
import sys
import sysconfig
from collections.abc import Sequence
from pathlib import Path

import pytest


def interpreter_of(name: str, packages: Sequence[str], behind: bool = True) -> Path:
    """The Python of the environment `name`; the test skips where the package index can't be reached.

    Without `behind` it has nothing of ours.
    """
    folder = Path(sys.prefix) / name
    python, complete = folder / "bin" / "python", folder / "complete"
    if complete.exists() and complete.read_text().split() == list(packages):
        return python
    subprocess.run([sys.executable, "-m", "venv", "--clear", str(folder)], check=True)
    words = [str(python), "-m", "pip", "install", "-q", "--disable-pip-version-check", *packages]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        pytest.skip(f"{' '.join(packages)} can't be installed: {done.stderr.strip().splitlines()[-1]}")
    if behind:
        (site,) = folder.glob("lib/python*/site-packages")
        # `addsitedir` reads the .pth files there, too: an editable install is one
        (site / "behind.pth").write_text(f"import site; site.addsitedir({sysconfig.get_path('purelib')!r})\n")
    complete.write_text("\n".join(packages))
    return python
