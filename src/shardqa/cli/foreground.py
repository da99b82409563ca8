"""The foreground of `shardqa up`: readable logs of every process until Ctrl-C, and an eye on those that end.

One thread: it polls the log files and the processes five times a second.
"""

import re
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import BinaryIO

from rich.text import Text

from shardqa.cli.output import err
from shardqa.cli.service import API_LOG, Service
from shardqa.cluster import redis_server
from shardqa.errors import SetupError

POLL_SECONDS = 0.2
BYTES_PER_ROUND = 64 * 1024  # of one log
REDIS_LINE = re.compile(r"^\d+:[A-Za-z-]+ \d+ \w+ \d{4} (\d\d:\d\d:\d\d)\.\d+ ([.\-*#]) (.*)$")
QUIET = (  # lines of Redis that tell a newcomer nothing
    "oO0OoO0OoO0Oo", "Configuration loaded", "monotonic clock", "Memory overcommit", "Server initialized",
)  # fmt: skip
COLOURS = ("cyan", "green", "yellow", "magenta", "blue", "bright_cyan", "bright_green", "bright_magenta")


class Stopped(Exception):
    """The program got SIGINT, SIGTERM or SIGHUP."""


class Tail:
    """The end of a log file: lines that are added from now on."""

    def __init__(self, path: Path, name: str, colour: str) -> None:
        self.name = name
        self.colour = colour
        self._path = path
        self._file: BinaryIO | None = None
        self._rest = b""
        self._position = path.stat().st_size if path.exists() else 0

    def lines(self) -> Iterator[str]:
        if self._file is None:
            if not self._path.exists():
                return
            self._file = open(self._path, "rb")  # noqa: SIM115 - open as long as the tail lives
            self._file.seek(self._position)
        *whole, self._rest = (self._rest + self._file.read(BYTES_PER_ROUND)).split(b"\n")
        for line in whole:
            yield line.decode(errors="replace")


def readable(line: str) -> str | None:
    """Returns a line of Redis' log as `time message`, warnings marked; None for noise."""
    match = REDIS_LINE.match(line.strip())
    if match is None:
        return line.rstrip() or None
    clock, level, message = match.groups()
    if level in ".-" or any(words in message for words in QUIET):
        return None
    return f"{clock} {'! ' if level == '#' else ''}{message}"


@contextmanager
def stopping_signals() -> Iterator[None]:
    """Turns the first signal into Stopped; ignores those that follow, so that stopping can finish."""

    def stop(number: int, frame: FrameType | None) -> None:
        for each in numbers:
            signal.signal(each, signal.SIG_IGN)
        raise Stopped

    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.signal(number, stop) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def tails_of(service: Service) -> list[Tail]:
    nodes = [
        Tail(service.cluster.data / node.folder / redis_server.LOG, str(node.port), COLOURS[i % len(COLOURS)])
        for i, node in enumerate(service.cluster.state.nodes)
    ]
    return [*nodes, Tail(service.cluster.data / API_LOG, "api", "white")]


def watch(service: Service, tails: list[Tail]) -> None:
    """Streams logs until Stopped is raised by a signal. Raises SetupError when the API or every node has ended."""
    dead: set[int] = set()
    while True:
        for tail in tails:
            for line in tail.lines():
                text = readable(line)
                if text is not None:
                    err.print(Text.assemble((f"{tail.name:>5} │ ", tail.colour), text))
        redis_server.reap()
        for node in service.cluster.state.nodes:
            if node.port not in dead and not node.running():
                dead.add(node.port)
                err.print(f"the node on port {node.port} ended; 'shardqa up --detach' restarts it", style="bold red")
        if len(dead) == len(service.cluster.state.nodes):
            raise SetupError("every node of the cluster has ended; their logs are above")
        if not service.api_running():
            raise SetupError(f"the API has ended; see {service.cluster.data / API_LOG}")
        time.sleep(POLL_SECONDS)
