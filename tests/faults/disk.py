"""A node under a preloaded shim (shim.c), whose disk is full or fails at the n-th write, and what it acknowledged."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from shardqa.config import Settings
from shardqa.engine import Engine
from shardqa.schema import Document
from tests.faults import documents
from tests.faults.operations import LETTERS
from tests.faults.shim import Shim, build, environment
from tests.nodes import Node, prepare_settings, wait_until

DOCUMENT = "mill of Arnsby"
CORPUS = "disk"
EVERY = os.environ.get("FAULTS") == "all"
MANY = 60  # of the writes of one file, evenly spread, where there are more


class Disk:
    """A node, its shim, and what was acknowledged."""

    def __init__(self, folder: Path, shim: Shim, **options: Any) -> None:
        self.shim = shim
        worker = shim.python(folder / "python", sys.executable)
        self.node = Node(folder / "node", environment=environment(shim), cluster=True, python=worker, **options)
        self.version = 0
        self.acknowledged = 0  # the latest version that was

    def start(self) -> None:
        self.node.start()
        with self.node.client() as client:
            client.execute_command("CLUSTER", "ADDSLOTSRANGE", 0, 16383)
            wait_until(lambda: b"cluster_state:ok" in client.execute_command("CLUSTER", "INFO"), "the slots are served")
        prepare_settings(self.settings())

    def settings(self) -> Settings:
        return Settings(redis=f"127.0.0.1:{self.node.port}", corpus=CORPUS, timeout=90)

    def info(self, name: str) -> Any:
        with self.node.client() as client:
            return client.info("persistence")[name]

    def is_written(self) -> bool:
        """Whether all that was acknowledged is in the file: while Redis syncs, it keeps writes back for two seconds."""
        with self.node.client() as client:
            found = client.info("persistence")
        return found["aof_last_write_status"] == "ok" and not found["aof_buffer_length"]

    async def put(self, engine: Engine) -> None:
        self.version += 1
        text = documents.text(DOCUMENT, self.version)
        await engine.documents.put(Document(id=DOCUMENT, title=DOCUMENT, text=text))
        self.acknowledged = self.version

    async def holds(self, engine: Engine) -> None:
        """Raises AssertionError: what is there is the last acknowledged version or a later one, and is answered."""
        found = await engine.documents.get(CORPUS, DOCUMENT)
        assert found is not None
        texts = {documents.text(DOCUMENT, version): version for version in range(self.acknowledged, self.version + 1)}
        assert found.text in texts, found.text
        question = documents.questions(DOCUMENT, texts[found.text])[0]
        answer = await engine.ask(f"{question.text} {str(self.shim.writes).translate(LETTERS)}", fresh=True)
        assert answer.answer == question.answer


@contextmanager
def running_disk(folder: Path, files: str, **options: Any) -> Iterator[Disk]:
    """`options` of the node."""
    disk = Disk(folder, Shim(folder, build(folder), files), **options)
    try:
        disk.start()
        yield disk
    finally:
        disk.shim.heal()
        disk.node.stop()


def some(count: int) -> list[int]:
    """Numbers of writes to fail, of so many."""
    ends = {1, 2, max(count // 2, 1), max(count, 1)}
    return sorted(ends | {*range(1, count + 1, max(count // MANY, 1))} if EVERY else ends)
