import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]


def test_the_clients_that_block_are_what_those_for_asyncio_give() -> None:
    command = [sys.executable, "tools/blocking_clients.py", "--check"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
