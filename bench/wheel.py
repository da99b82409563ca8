"""A wheel in an empty venv, outside every checkout: seconds from `shardqa demo` to its first printed answer.

    python bench/wheel.py

Builds an sdist and its wheel, installs that with all extras (not timed), and runs the demo in an empty folder with an
empty home, in a network namespace that has loopback alone where the kernel lends one: nothing can be downloaded.
Wanted: 20 s with redis-server present.
"""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter

from shardqa import machine
from shardqa.cluster import ports

ROOT = Path(__file__).parents[1]
RUNS = int(os.environ.get("RUNS", "3"))
ANSWER = "answer    "
ALONE = ["unshare", "-rn", "--kill-child", "sh", "-c", 'ip link set lo up && exec "$@"', "alone"]


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="shardqa-wheel-") as name:
        folder = Path(name)
        wheel = built(folder / "built")
        python = installed(wheel, folder / "venv")
        alone = has_namespaces()
        print(f"{wheel.name}, {wheel.stat().st_size / 1e6:.1f} MB; {machine.label()}, load {os.getloadavg()[0]:.1f}")
        print("network: loopback alone" if alone else "network: not taken away, since unshare or ip is missing here")
        for number in range(RUNS):
            place = folder / f"run-{number}"
            place.mkdir()
            seconds, answer = demo(python, place, alone)
            print(f"run {number + 1}: {seconds:.1f} s to the first printed answer ({answer}); wanted 20 s")


def built(folder: Path) -> Path:
    """A wheel by way of an sdist, so that a checkout's leftovers can't be in it."""
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    subprocess.run(command, check=True, capture_output=True, cwd=ROOT)
    (wheel,) = folder.glob("*.whl")
    return wheel


def installed(wheel: Path, folder: Path) -> Path:
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    python = folder / "bin" / "python"
    pins = str(ROOT / "requirements.lock")
    pip = [str(python), "-m", "pip", "install", "-qq", "--disable-pip-version-check", "-c", pins, f"{wheel}[all]"]
    subprocess.run(pip, check=True, cwd=folder)
    return python


def has_namespaces() -> bool:
    if not shutil.which("unshare") or not shutil.which("ip"):
        return False
    return subprocess.run([*ALONE, "true"], check=False, capture_output=True).returncode == 0


def demo(python: Path, place: Path, alone: bool) -> tuple[float, str]:
    """(seconds to the answer's line, that line) in a folder and a home that are empty."""
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(("SHARDQA_", "XDG_", "PYTHON"))
    }
    (home := place / "home").mkdir()
    (folder := place / "folder").mkdir()
    port = ports.random_block(4, 10_000)  # three nodes and the API
    options = ["--port", str(port), "--http", str(port + 3)]
    command = [*(ALONE if alone else []), str(python.parent / "shardqa"), "demo", *options]
    start = perf_counter()
    with subprocess.Popen(
        command,
        cwd=folder,
        env={**environment, "HOME": str(home)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            assert process.stdout is not None
            for line in process.stdout:
                if line.startswith(ANSWER):
                    return perf_counter() - start, line.removeprefix(ANSWER).strip()
        finally:
            os.killpg(process.pid, signal.SIGINT)
            _, said = process.communicate(timeout=60)
    raise SystemExit(f"no answer was printed: {said[-2000:]}")


if __name__ == "__main__":
    main()
