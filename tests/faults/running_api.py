"""An API process of its own: of this version, or of the one that `python` runs."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic

import httpx

from shardqa.cluster import ports
from shardqa.config import Settings

SECONDS = 60.0  # until it answers


@contextmanager
def running_api(settings: Settings, folder: Path, python: Path = Path(sys.executable)) -> Iterator[tuple[str, int]]:
    """(URL, pid)."""
    port = ports.random_block(1, 0)
    given = {"REDIS": settings.redis, "CORPUS": settings.corpus, "HTTP_PORT": str(port)}
    given |= {"TIMEOUT": f"{settings.timeout:g}", "CACHE_MEGABYTES": "4"}  # full soon: what grows then is no cache
    kept = {name: value for name, value in os.environ.items() if not name.startswith("SHARDQA_")}
    environment = {**kept, **{f"SHARDQA_{name}": value for name, value in given.items()}}
    with (folder / "api.log").open("ab") as log:
        command = [str(python), "-m", "shardqa.api"]
        process = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
    try:
        url, deadline = f"http://127.0.0.1:{port}", monotonic() + SECONDS
        while not answers(url):
            assert process.poll() is None, (folder / "api.log").read_text()
            assert monotonic() < deadline, f"the API does not answer after {SECONDS:g} s"
        yield url, process.pid
    finally:
        process.terminate()
        process.wait(30)


def answers(url: str) -> bool:
    try:
        return httpx.get(f"{url}/healthz", timeout=1).status_code == 200
    except httpx.HTTPError:
        return False
