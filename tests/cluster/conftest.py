"""Fixtures of tests on a cluster: the shards by plain commands, the program in this process."""

import io
import json
import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from shardqa import cli
from shardqa.cluster.local import LocalCluster
from tests.cluster.shards_client import Shards


@pytest.fixture
def shards(cluster: LocalCluster, corpus: str) -> Iterator[Shards]:
    """The shared cluster, by plain commands, with a corpus of this test's own."""
    shards = Shards(cluster, corpus)
    yield shards
    shards.close()


@pytest.fixture
def connect(corpus: str) -> Iterator[Callable[[LocalCluster], Shards]]:
    """Gives the same of clusters that a test starts itself."""
    parts: list[Shards] = []

    def connect(cluster: LocalCluster) -> Shards:
        parts.append(Shards(cluster, corpus))
        return parts[-1]

    yield connect
    for shards in parts:
        shards.close()


@dataclass(frozen=True, slots=True)
class Output:
    stdout: str
    stderr: str

    @property
    def json(self) -> Any:
        return json.loads(self.stdout)


@pytest.fixture
def program(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., Output]:
    """Runs the command line in this process: `program("ask", "Who?", SHARDQA_REDIS=seed, code=1)`."""

    def run(*words: str, code: int = 0, stdin: str = "", **environment: str) -> Output:
        capsys.readouterr()
        with monkeypatch.context() as patch:
            for name in [name for name in os.environ if name.startswith("SHARDQA_")]:
                patch.delenv(name)
            for name, value in environment.items():
                patch.setenv(name, value)
            patch.setattr(sys, "argv", ["shardqa", *words])
            patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin.encode())))
            with pytest.raises(SystemExit) as exit:
                cli.main()
        output = Output(*capsys.readouterr())
        assert int(exit.value.code or 0) == code, output.stdout + output.stderr
        return output

    return run
