"""Starting the processes of a step, letting them begin together, and what one that dies had to say."""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from typing import IO, Any, Self

from shardqa.errors import SetupError
from shardqa_toolchain.ladder.job import Job
from shardqa_toolchain.ladder.worker import ScoreShares, Timed

SAID_LINES = 5  # last lines of a dead process's stderr that are passed on


@dataclass(frozen=True, slots=True)
class Ran:
    """The report of one process."""

    start: float  # seconds from its start to its first answer
    timed: Timed


def time_step(name: str, jobs: Sequence[Job]) -> list[Ran]:
    """Run jobs side by side, a process each, timing all of them at once; raises SetupError when a process dies."""
    with ExitStack() as stack:
        processes = [stack.enter_context(_Process(name, job)) for job in jobs]
        starts = [process.first_answer() for process in processes]
        for process in processes:
            process.tell("")
        timed = [Timed(**process.message()) for process in processes]
    return [Ran(start, one) for start, one in zip(starts, timed, strict=True)]


def score_step(name: str, job: Job) -> ScoreShares:
    """Run a job that scores; raises SetupError when its process dies."""
    with _Process(name, job) as process:
        process.first_answer()
        return ScoreShares(**process.message())


class _Process:
    """A worker process with its stdin, stdout and stderr."""

    def __init__(self, name: str, job: Job) -> None:
        self._name, self._job = name, job
        self._stderr: IO[str] = tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace")  # noqa: SIM115
        self._began = time.monotonic()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "shardqa_toolchain.ladder.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._stderr,
            env=_environment(job.threads),
            text=True,
            encoding="utf-8",
        )

    def __enter__(self) -> Self:
        self.tell(json.dumps(asdict(self._job)))
        return self

    def __exit__(self, fault: type[BaseException] | None, *_: object) -> None:
        if fault is not None:
            self._process.kill()
        self._process.communicate()
        self._stderr.close()

    def tell(self, line: str) -> None:
        """Write a line to its stdin; raises SetupError when it is dead."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(line + "\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise self._fault() from None

    def message(self) -> dict[str, Any]:
        """Returns the process's next line; raises SetupError when it dies first."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise self._fault()
        found: dict[str, Any] = json.loads(line)
        return found

    def first_answer(self) -> float:
        """Seconds from its start to its first answer; raises SetupError when it dies first."""
        return float(self.message()["first_answer"]) - self._began

    def _fault(self) -> SetupError:
        code = self._process.wait()
        self._stderr.seek(0)
        last_lines = [line for line in self._stderr.read().splitlines() if line.strip()][-SAID_LINES:]
        ended = f"was ended by signal {-code}" if code < 0 else f"ended with exit code {code}"
        words = " / ".join(last_lines) or "it said nothing"
        return SetupError(f"the process of the step '{self._name}' {ended}: {words}")


def _environment(threads: int) -> dict[str, str]:
    """The job's number of OpenMP threads, and no look at the network for a model that lies here."""
    return {
        **os.environ,
        "OMP_NUM_THREADS": str(threads),
        "HF_HUB_OFFLINE": "1",
        "TRANSFORMERS_VERBOSITY": "error",
        "TOKENIZERS_PARALLELISM": "false",
    }
