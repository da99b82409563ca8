"""Generates the clients that block from those for asyncio; `--check` only compares.

The asyncio client is written by hand. unasync drops `async` and `await`, NAMES and PHRASES say what else differs.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

import unasync

ROOT = Path(__file__).parent.parent
CLIENTS = ("src/shardqa/client", "worker/client")  # folders with a concurrent.py
NAMES = {
    "AsyncBaseTransport": "BaseTransport",
    "AsyncClient": "Client",
    "AsyncModelClient": "ModelClient",
    "AsyncShards": "Shards",
    "aclose": "close",
    "answers_in_order_async": "answers_in_order",
    "asyncio": "time",  # both have sleep
    "exchange_through_async": "exchange_through",
}
PHRASES = {
    "for asyncio. tools/blocking_clients.py generates blocking.py from this file.": "that blocks. "
    "tools/blocking_clients.py generates it from concurrent.py: edit that one.",
    "One event loop owns it": "Threads may share it",
    "One loop owns it": "Threads may share it",
    "a client of redis.asyncio": "a redis-py client of your own",
    "from redis.asyncio import": "from redis import",
    "Coroutine[Any, Any, Results]": "Results",
    "then `run` and await it": "then `run` it",
}


def main() -> None:
    stale = []
    for folder in CLIENTS:
        path = ROOT / folder / "blocking.py"
        text = blocking(path.with_name("concurrent.py").read_text())
        if "--check" not in sys.argv:
            path.write_text(text)
        elif text != path.read_text():
            stale.append(str(path.relative_to(ROOT)))
    if stale:
        sys.exit(f"{' and '.join(stale)}: not what concurrent.py gives; run 'python tools/blocking_clients.py'")


def blocking(source: str) -> str:
    """The text of a client that blocks, of the text of one for asyncio."""
    for phrase, other in PHRASES.items():
        source = source.replace(phrase, other)
    with tempfile.TemporaryDirectory() as folder:
        written, generated = Path(folder, "async", "client.py"), Path(folder, "sync", "client.py")
        written.parent.mkdir()
        written.write_text(source)
        unasync.unasync_files([str(written)], [unasync.Rule("/async/", "/sync/", NAMES)])
        text = generated.read_text()
    text = _ruff("check", "--fix-only", "--select", "I,F401,UP028", "--unsafe-fixes", text=text)
    return _ruff("format", text=text)


def _ruff(*words: str, text: str) -> str:
    command = [
        sys.executable,
        "-m",
        "ruff",
        *words,
        "--quiet",
        "--stdin-filename",
        "src/shardqa/client/blocking.py",
        "-",
    ]
    return subprocess.run(command, input=text, capture_output=True, text=True, check=True, cwd=ROOT).stdout


if __name__ == "__main__":
    main()
