"""Files of Debian's packages, fetched once by apt-get into .venv/debian, for tests that want real ones.

`make test-files` runs them; `make test` does not.
"""

import gzip
import shutil
import subprocess
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / ".venv" / "debian"


def content(package: str, path: str) -> bytes:
    """A file of a package, unpacked where its name ends in .gz. Skips the test where the package can't be fetched."""
    file = folder(package) / path.lstrip("/")
    if not file.is_file():
        pytest.skip(f"{package} has no {path} in this release of Debian")
    return gzip.decompress(file.read_bytes()) if path.endswith(".gz") else file.read_bytes()


def folder(package: str) -> Path:
    """Returns where its files lie. Skips the test where the package can't be fetched."""
    folder = FOLDER / package
    if not folder.is_dir():
        if shutil.which("apt-get") is None:
            pytest.skip("there is no apt-get here")
        downloads = FOLDER / "downloads"
        downloads.mkdir(parents=True, exist_ok=True)
        fetched = subprocess.run(["apt-get", "download", "-q", package], cwd=downloads, capture_output=True, text=True)
        files = sorted(downloads.glob(f"{package}_*.deb"))
        if not files:
            pytest.skip(f"apt-get can't fetch {package}: {fetched.stderr.strip()[:200]}")
        subprocess.run(["dpkg-deb", "--extract", str(files[-1]), str(folder)], check=True)
        files[-1].unlink()
    return folder
