"""Compiled modules in a bundle: its folder is read-only where it runs, so each cold start would compile all anew."""

import subprocess
from pathlib import Path

from shardqa.errors import SetupError

TASK_ROOT = "/var/task"  # where Lambda unpacks a bundle; tracebacks name files there


def compile_all(python: str, root: Path) -> None:
    """Compiles every module under the root with the target's interpreter; the same input gives the same bytes.

    Nothing checks them when they are loaded (PEP 552, unchecked): the bundle never changes. Raises SetupError.
    """
    command = [python, "-s", "-S", "-m", "compileall", "-q", "-f", "--invalidation-mode", "unchecked-hash"]
    command += ["-s", str(root), "-p", TASK_ROOT, str(root)]
    environment = {"PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1"}
    process = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    if process.returncode:
        output = (process.stdout + process.stderr).strip().splitlines()
        raise SetupError(f"{python} could not compile the bundle: {output[-1] if output else 'it output nothing'}")
