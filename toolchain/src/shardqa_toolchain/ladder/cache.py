"""The ladder's last step: answers that Redis remembers. Apart from the others, which do not pay for its imports."""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shardqa import keys
from shardqa.errors import SetupError
from shardqa_toolchain.measure import Read

if TYPE_CHECKING:
    from redis import Redis

    from shardqa_toolchain.ladder.job import LadderServer
    from shardqa_toolchain.measure import QuestionRows

REDIS_SECONDS = 10.0  # a Redis that has not answered by then does not come up


@dataclass(frozen=True, slots=True)
class CacheServer:
    """Answers that Redis remembers, and a network for the others."""

    server: LadderServer
    client: Redis

    def answers(self, readings: Sequence[QuestionRows]) -> list[Read]:
        """Redis's, else the network's, which Redis then remembers."""
        return [self._answer(reading) for reading in readings]

    def _answer(self, reading: QuestionRows) -> Read:
        key = keys.ask("ladder", "0", "reader", 1, 1, keys.normalise_question(reading.question.text))
        kept: Any = self.client.get(key)
        if kept is not None:
            return Read(reading.question, **json.loads(kept))
        (found,) = self.server.answers([reading])
        known = {name: getattr(found, name) for name in ("answer", "span_logit", "null_logit", "seconds")}
        self.client.set(key, json.dumps(known))
        return found


@contextmanager
def redis_server() -> Iterator[Redis]:
    """A client of an empty Redis of its own, on a Unix socket; raises SetupError when there is none to start."""
    from redis import Redis

    program = shutil.which("redis-server") or shutil.which("valkey-server")
    if program is None:
        raise SetupError("redis-server is not installed, which answers from the cache need; install it, or --no-sides")
    with tempfile.TemporaryDirectory(prefix="shardqa-ladder-") as folder:
        socket = f"{folder}/redis"
        words = ["--port", "0", "--unixsocket", socket, "--save", "", "--appendonly", "no", "--dir", folder]
        process = subprocess.Popen([program, *words], stdout=subprocess.DEVNULL)
        try:
            _wait_for(Path(socket), process)
            with Redis(unix_socket_path=socket) as client:
                yield client
        finally:
            process.terminate()
            process.wait()


def _wait_for(socket: Path, process: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + REDIS_SECONDS
    while not socket.exists():
        if process.poll() is not None or time.monotonic() > until:
            raise SetupError(f"redis-server did not come up in {REDIS_SECONDS:.0f} s (exit code {process.poll()})")
        time.sleep(0.01)
