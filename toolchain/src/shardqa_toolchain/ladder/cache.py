"""Answers that Redis remembers, asked for by one client: they stand beside the ladder."""

import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from redis import Redis
from redis.backoff import ConstantBackoff
from redis.retry import Retry

from shardqa import keys
from shardqa.errors import SetupError
from shardqa_toolchain import squad

UP_TRIES = 200  # twenty a second, until it is up


def times(questions: Path, passes: int) -> list[float]:
    """Seconds of each GET of an answer, over all questions of a SQuAD file; raises SetupError for want of Redis."""
    names = [
        keys.ask("ladder", "0", "reader", 1, 1, keys.normalise_question(one.text))
        for one in squad.read(questions).questions
    ]
    seconds = []
    with _redis() as client:
        for key in names:
            client.set(key, "an answer and where it stands " * 8)
        for key in names * passes:
            began = time.perf_counter()
            client.get(key)
            seconds.append(time.perf_counter() - began)
    return seconds


@contextmanager
def _redis() -> Iterator[Redis]:
    """A client of an empty Redis of its own, on a Unix socket."""
    program = shutil.which("redis-server") or shutil.which("valkey-server")
    if program is None:
        raise SetupError("redis-server is not installed, which answers from the cache need; install it: make setup")
    with tempfile.TemporaryDirectory(prefix="shardqa-ladder-") as folder:
        socket = f"{folder}/redis"
        words = ["--port", "0", "--unixsocket", socket, "--save", "", "--dir", folder]
        process = subprocess.Popen([program, *words], stdout=subprocess.DEVNULL)
        try:
            with Redis(unix_socket_path=socket, retry=Retry(ConstantBackoff(0.05), UP_TRIES)) as client:
                client.ping()
                yield client
        finally:
            process.terminate()
            process.wait()
