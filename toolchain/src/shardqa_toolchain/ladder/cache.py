"""Answers that Redis remembers, asked for by one client: they stand beside the ladder."""

import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from redis import Redis

from shardqa import keys
from shardqa.errors import SetupError
from shardqa_toolchain import squad

UP_SECONDS = 10.0  # a Redis that has not answered by then does not come up


def times(questions: Path, passes: int) -> list[float]:
    """Seconds of each GET of an answer, over all questions of a SQuAD file; raises SetupError for want of Redis."""
    names = [keys.ask("ladder", "0", "reader", 1, 1, keys.normalise_question(one.text)) for one in _read(questions)]
    seconds = []
    with _redis() as client:
        for key in names:
            client.set(key, "an answer and where it stands " * 8)
        for key in names * passes:
            began = time.perf_counter()
            client.get(key)
            seconds.append(time.perf_counter() - began)
    return seconds


def _read(questions: Path) -> Sequence[squad.SquadQuestion]:
    return squad.read(questions).questions


@contextmanager
def _redis() -> Iterator[Redis]:
    """A client of an empty Redis of its own, on a Unix socket."""
    program = shutil.which("redis-server") or shutil.which("valkey-server")
    if program is None:
        raise SetupError("redis-server is not installed, which answers from the cache need; install it: make setup")
    with tempfile.TemporaryDirectory(prefix="shardqa-ladder-") as folder:
        socket = Path(folder) / "redis"
        words = ["--port", "0", "--unixsocket", str(socket), "--save", "", "--dir", folder]
        process = subprocess.Popen([program, *words], stdout=subprocess.DEVNULL)
        try:
            until = time.monotonic() + UP_SECONDS
            while not socket.exists():
                if process.poll() is not None or time.monotonic() > until:
                    raise SetupError(f"redis-server did not come up in {UP_SECONDS:.0f} s; try it by hand")
                time.sleep(0.01)
            with Redis(unix_socket_path=str(socket)) as client:
                yield client
        finally:
            process.terminate()
            process.wait()
