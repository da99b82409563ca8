"""`make test-docs`: sessions and programs of the documentation where a reader types them.

A clone of the last commit runs `make run` in a virtual environment of its own; the programs run there, and once more
in an environment that has nothing but the wheel with its extra `client`. test_sessions.py types them.
"""

import os
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

from tests.nodes import free_port

ROOT = Path(__file__).parents[2]
MINUTES = 20  # until `make run` serves: it compiles, and downloads what requirements.lock names


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="shardqa-docs-") as name:
        folder = Path(name)
        clone = folder / "shardqa"
        clean = {key: value for key, value in os.environ.items() if not key.startswith("SHARDQA_")}
        environment = {**clean, "XDG_CACHE_HOME": str(folder / "cache")}
        environment.pop("VIRTUAL_ENV", None)
        run(["git", "clone", "--quiet", str(ROOT), str(clone)], folder, environment)
        port, http = free_port(), free_port()
        settings = [f"PORT={port}", f"HTTP={http}"]
        with subprocess.Popen(["make", "run", *settings], cwd=clone, env=environment) as process:
            try:
                wait(f"http://127.0.0.1:{http}/readyz", process)
                python = clone / ".venv" / "bin" / "python"
                wheel = folder / "wheel"
                words = ["-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "-w", str(wheel), str(clone)]
                run([str(python), *words], folder, environment)
                run([str(python), "-m", "venv", str(folder / "client")], folder, environment)
                client = folder / "client" / "bin" / "python"
                (file,) = wheel.glob("*.whl")
                run([str(client), "-m", "pip", "install", "-q", f"{file}[client]"], folder, environment)
                reader = {"DOCS_PORT": str(port), "DOCS_HTTP": str(http), "DOCS_PYTHONS": f"{python}:{client}"}
                command = [sys.executable, "-m", "pytest", "-q", "-rs", "tests/docs/test_sessions.py", *sys.argv[1:]]
                return subprocess.run(command, cwd=ROOT, env={**os.environ, **reader}, check=False).returncode
            finally:
                process.terminate()


def run(words: list[str], folder: Path, environment: dict[str, str]) -> None:
    subprocess.run(words, cwd=folder, env=environment, check=True)


def wait(address: str, served: "subprocess.Popen[bytes]") -> None:
    """Until the API answers and the example was asked: the corpus is whole then."""
    deadline = time.monotonic() + MINUTES * 60
    corpus = address.replace("readyz", "v1/ask?q=Who+founded+Saltmere+Observatory&corpus=seeds")
    while time.monotonic() < deadline:
        if served.poll() is not None:
            sys.exit(f"make run ended with {served.returncode}")
        try:
            for one in (address, corpus):
                urllib.request.urlopen(one, timeout=30).close()
        except OSError:
            time.sleep(1)
        else:
            return
    sys.exit(f"make run did not serve within {MINUTES} minutes")


if __name__ == "__main__":
    sys.exit(main())
