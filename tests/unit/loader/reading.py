"""Reads a file in a process of its own, within memory and time: what a hostile file may do to its reader is seen there.

The process stays for many files. It must answer each with documents and reasons; an exception, a signal, too much
memory or too much time is a failure.
"""

import json
import os
import resource
import select
import struct
import subprocess
import sys
import traceback
from collections.abc import Sequence
from dataclasses import dataclass

MEMORY = 2 << 30  # bytes of address space beyond what the libraries take
SECONDS = 60.0  # of one small file on a slow processor; what grows with the square of its input takes hours
LENGTHS = struct.Struct("<II")  # of name and content


@dataclass
class Read:
    documents: int
    reasons: list[str]
    failure: str = ""  # traceback of what is not a reader's own error


class Reader:
    """A process that reads; started anew after one that ended."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None

    def read(self, name: str, content: bytes) -> Read:
        process = self._started()
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(LENGTHS.pack(len(name.encode()), len(content)) + name.encode() + content)
            process.stdin.flush()
            line = process.stdout.readline() if self._answers(process) else b""
        except BrokenPipeError:
            line = b""
        if line:
            return Read(**json.loads(line))
        process.kill()
        code = process.wait()
        self._process = None
        return Read(0, [], f"the process ended with {code}, or was still at it after {SECONDS:g} s of processor time")

    def close(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def _answers(self, process: "subprocess.Popen[bytes]") -> bool:
        """Waits by the processor time that it takes, so that a loaded machine makes no failure."""
        assert process.stdout is not None
        begun = _cpu(process.pid)
        while not select.select([process.stdout], [], [], 0.2)[0]:
            if process.poll() is not None or _cpu(process.pid) - begun > SECONDS:
                return False
        return True

    def _started(self) -> "subprocess.Popen[bytes]":
        if self._process is None:
            command = [sys.executable, "-m", "tests.unit.loader.reading"]
            self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        return self._process


def _cpu(pid: int) -> float:
    try:
        with open(f"/proc/{pid}/stat") as file:
            fields = file.read().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main(_: Sequence[str]) -> None:
    from shardqa.loader import formats
    from shardqa.loader.source_file import Lost, Skipped, SourceFile, Textless

    for format in formats.FORMATS:
        format.reader()
    with open("/proc/self/statm") as file:
        used = int(file.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, used + MEMORY))
    stdin, stdout = sys.stdin.buffer, sys.stdout
    sys.stdout = sys.stderr
    while head := stdin.read(LENGTHS.size):
        lengths = LENGTHS.unpack(head)
        name, content = stdin.read(lengths[0]).decode(), stdin.read(lengths[1])
        result = Read(0, [])
        try:
            for item in formats.read(SourceFile.of_bytes(content, name, name, inner=formats.read)):
                if isinstance(item, Skipped | Lost | Textless):
                    result.reasons.append(item.reason[:300])
                else:
                    result.documents += 1
                    item.model_dump_json()
        except Exception:  # noqa: BLE001 - that is what is looked for
            result.failure = traceback.format_exc()[-3000:]
        stdout.write(json.dumps(vars(result)) + "\n")
        stdout.flush()


if __name__ == "__main__":
    main(sys.argv)
