"""Processes that are measured: started, asked over their pipes, and what one that dies had to say."""

import functools
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Collection, Sequence
from typing import IO, Any, Self

from shardqa.errors import SetupError

LAST_LINES = 5  # last lines of a dead process's stderr that are passed on


class Process:
    """A process that answers each line of JSON with one, held to some cores or to none."""

    def __init__(self, command: Sequence[str], cores: Collection[int] = (), **options: Any) -> None:
        self._stderr: IO[str] = tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace")  # noqa: SIM115
        self._began = time.monotonic()
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._stderr,
            text=True,
            preexec_fn=(lambda: os.sched_setaffinity(0, cores)) if cores else None,
            **options,
        )

    @classmethod
    def of_module(cls, words: Sequence[str], threads: int = 1, core: int | None = None) -> Self:
        """Starts a module of ours, whose first line is its first answer's time."""
        cores = () if core is None else (core,)
        return cls([sys.executable, "-m", *words], cores, env=_environment(threads))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()
        self._stderr.close()

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def ended(self) -> bool:
        return self._process.poll() is not None

    def tell(self, message: object) -> None:
        """Writes a line to its stdin; raises SetupError when it is dead."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(message) + "\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise self._fault() from None

    def message(self) -> Any:
        """Returns its next line; raises SetupError when it dies first."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise self._fault()
        return json.loads(line)

    def ask(self, message: object) -> Any:
        """Returns its reply; raises SetupError when it is dead."""
        self.tell(message)
        return self.message()

    @functools.cached_property
    def first_answer(self) -> float:
        """Seconds from its start to its first answer; raises SetupError when it dies first."""
        return float(self.message()["first_answer"]) - self._began

    def _fault(self) -> SetupError:
        code = self._process.wait()
        self._stderr.seek(0)
        last_lines = [line for line in self._stderr.read().splitlines() if line.strip()][-LAST_LINES:]
        return SetupError(f"the process ended with {code}: {' / '.join(last_lines) or 'it said nothing'}")


def _environment(threads: int) -> dict[str, str]:
    """The number of OpenMP threads, and no look at the network for a model that lies here."""
    settings = {"OMP_NUM_THREADS": str(threads), "HF_HUB_OFFLINE": "1", "TRANSFORMERS_VERBOSITY": "error"}
    return {**os.environ, **settings, "TOKENIZERS_PARALLELISM": "false"}
