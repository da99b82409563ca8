"""A reader in a process of its own, for tests of files that may harm it."""

from collections.abc import Iterator

import pytest

from shardqa.files.reader_process import MEMORY
from tests.unit.files.reading import Reader


@pytest.fixture(scope="module")
def reader() -> Iterator[Reader]:
    process = Reader(MEMORY)
    yield process
    process.stop()
