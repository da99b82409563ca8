"""Reads a file in a process of its own, within memory and time: what a hostile file may do to its reader is seen there.

The process stays for many files. It must answer each with documents and reasons; an exception, a signal, too much
memory or too much time is a failure.
"""

from dataclasses import dataclass
from functools import partial

from shardqa.errors import BadDocument, FileTooSlow
from shardqa.files import formats
from shardqa.files.reader_process import ReaderProcess
from shardqa.files.source_file import Lost, Skipped, SourceFile, Textless

SECONDS = 300.0  # of one small file on a loaded machine; what grows with the square of its input takes hours


@dataclass
class Read:
    documents: int
    reasons: list[str]
    failure: str = ""  # what is not a reader's own error


class Reader(ReaderProcess):
    def read(self, name: str, content: bytes) -> Read:
        opens = partial(SourceFile.of_bytes, content, name, name, inner=formats.read)
        try:
            items = [item for item, _ in self.items(name, SECONDS, opens)]
        except (BadDocument, FileTooSlow) as fault:
            return Read(0, [], str(fault))
        reasons = [item.reason[:300] for item in items if isinstance(item, Skipped | Lost | Textless)]
        return Read(len(items) - len(reasons), reasons)
