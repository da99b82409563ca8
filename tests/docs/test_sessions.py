"""Sessions of README and docs are typed into a shell, on a live cluster with API, and print what stands there.

The suite types them in the developers' environment; `make test-docs` (fresh.py) in the one that a reader has.
"""

import itertools
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from shardqa.cluster.local import LocalCluster
from tests.api.conftest import running_api
from tests.docs.sessions import Command, console, fits, programs

ROOT = Path(__file__).parents[2]
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").glob("*.md")])
END = "--- end of command"  # printed after each, with its number

# In a terminal redis-cli numbers the elements of a reply; here its output is a pipe.
PRELUDE = """
redis-cli() { case "$*" in *RG.*|*AI.*) command redis-cli --no-raw "$@";; *) command redis-cli "$@";; esac; }
"""


@dataclass(frozen=True)
class Reader:
    """The place where documentation is typed: ports of the cluster and the API, and Pythons that have shardqa."""

    ports: list[int]
    http: int
    pythons: list[Path]
    environment: dict[str, str]

    def as_here(self, text: str) -> str:
        """The ports of the documents -> those that are here."""
        for host in ("localhost", "127.0.0.1"):
            text = text.replace(f"{host}:8080", f"127.0.0.1:{self.http}")
        for number, port in enumerate(self.ports):
            text = re.sub(rf"\b{7000 + number}\b", str(port), text)
        return text


@pytest.fixture(scope="module")
def reader(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reader]:
    """The developers' own environment; where fresh.py says so, the one of a reader."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("SHARDQA_")}
    clean |= {"COLUMNS": "200", "XDG_CACHE_HOME": str(tmp_path_factory.mktemp("cache"))}
    if "DOCS_PORT" in os.environ:
        port, http = int(os.environ["DOCS_PORT"]), int(os.environ["DOCS_HTTP"])
        pythons = [Path(one) for one in os.environ["DOCS_PYTHONS"].split(":")]
        yield Reader([port, port + 1, port + 2], http, pythons, _with(clean, pythons[0], f"127.0.0.1:{port}"))
        return
    cluster: LocalCluster = request.getfixturevalue("cluster")
    environment = _with(clean, Path(sys.executable), cluster.seed())
    command = [sys.executable, "-m", "shardqa.cli", "ingest", str(ROOT / "seeds" / "documents"), "--corpus", "seeds"]
    subprocess.run(command, env=environment, check=True, capture_output=True, timeout=110)  # as `make run` does
    with running_api(tmp_path_factory.mktemp("api"), redis=cluster.seed(), timeout=30) as server:
        yield Reader([port for _, port in cluster.addresses], server.port, [Path(sys.executable)], environment)


def _with(environment: dict[str, str], python: Path, redis: str) -> dict[str, str]:
    path = f"{python.parent}{os.pathsep}{environment['PATH']}"
    return {**environment, "SHARDQA_REDIS": redis, "PATH": path}


def typed(commands: list[Command], folder: Path, environment: dict[str, str]) -> list[str]:
    """Types all commands into one shell; returns what each prints."""
    script = PRELUDE + "".join(f"{command.typed}\necho '{END}'\n" for command in commands)
    process = subprocess.run(
        ["bash", "-c", script],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=110,
        check=False,
    )
    printed = process.stdout.split(f"{END}\n")[:-1]
    assert len(printed) == len(commands), process.stdout
    return printed


@pytest.mark.parametrize("page", [p for p in PAGES if "```console" in p.read_text()], ids=lambda page: page.name)
def test_a_session_prints_what_stands_there(page: Path, reader: Reader, tmp_path: Path) -> None:
    for name in ("seeds", "docs"):
        (tmp_path / name).symlink_to(ROOT / name)
    commands = console(reader.as_here(page.read_text()))
    if any("AI.SCRIPTSTORE" in command.typed for command in commands):
        _skip_without_torch(reader.pythons[0])
    assert commands
    wrong = [
        f"$ {command.typed}\n{printed}"
        for command, printed in zip(commands, typed(commands, tmp_path, reader.environment), strict=True)
        if not fits(command.prints, printed if not printed or printed.endswith("\n") else printed + "\n")
    ]
    assert not wrong, "\n".join(wrong)


def _skip_without_torch(python: Path) -> None:
    if subprocess.run([python, "-c", "import torch"], capture_output=True, check=False).returncode != 0:
        pytest.skip("TorchScript is torch's")


@pytest.mark.parametrize("page", [p for p in PAGES if programs(p)], ids=lambda page: page.name)
def test_a_program_prints_what_its_comments_say(page: Path, reader: Reader, tmp_path: Path) -> None:
    for (code, expected), python in itertools.product(programs(page), reader.pythons):
        process = subprocess.run(
            [python, "-c", reader.as_here(code)],
            cwd=tmp_path,
            env=reader.environment,
            capture_output=True,
            text=True,
            timeout=110,
            check=False,
        )
        assert process.stdout.splitlines() == expected, f"{python}: {process.stderr}"


def test_the_snippet_for_node_runs_in_it(reader: Reader, tmp_path: Path) -> None:
    if (node := shutil.which("node")) is None:
        pytest.skip("there is no Node")
    (code,) = re.findall(r"```js\n(.*?)```", (ROOT / "docs" / "client-javascript.md").read_text(), re.DOTALL)
    (tmp_path / "node_modules").mkdir()
    (tmp_path / "node_modules" / "shardqa").symlink_to(ROOT / "api" / "page")
    (tmp_path / "snippet.mjs").write_text(reader.as_here(code))
    done = subprocess.run([node, "snippet.mjs"], cwd=tmp_path, capture_output=True, text=True, timeout=110, check=False)
    assert done.stdout.splitlines() == ["mill", "Ada Holm mill"], done.stderr
