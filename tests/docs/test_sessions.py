"""Sessions of README and docs are typed into a shell, on a live cluster with API, and print what stands there."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from shardqa.cluster.local import LocalCluster
from tests.api.conftest import Server, running_api
from tests.docs.sessions import Command, console, fits, programs

ROOT = Path(__file__).parents[2]
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").glob("*.md")])
END = "--- end of command"  # printed after each, with its number

# In a terminal redis-cli numbers the elements of a reply; here its output is a pipe.
PRELUDE = """
redis-cli() { case "$*" in *RG.*|*AI.*) command redis-cli --no-raw "$@";; *) command redis-cli "$@";; esac; }
"""


@pytest.fixture(scope="module")
def api(cluster: LocalCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with running_api(tmp_path_factory.mktemp("api"), redis=cluster.seed(), timeout=30) as server:
        yield server


@pytest.fixture(scope="module")
def environment(cluster: LocalCluster, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("SHARDQA_")}
    programs_first = f"{Path(sys.executable).parent}{os.pathsep}{clean['PATH']}"
    return {
        **clean,
        "SHARDQA_REDIS": cluster.seed(),
        "PATH": programs_first,
        "COLUMNS": "200",
        "XDG_CACHE_HOME": str(tmp_path_factory.mktemp("cache")),
    }


@pytest.fixture(scope="module", autouse=True)
def seeds(environment: dict[str, str]) -> None:
    """The documents that `make run` ingests."""
    command = [sys.executable, "-m", "shardqa.cli", "ingest", str(ROOT / "seeds" / "documents"), "--corpus", "seeds"]
    subprocess.run(command, env=environment, check=True, capture_output=True, timeout=110)


def as_here(text: str, cluster: LocalCluster, api: Server) -> str:
    """The ports of the documents -> those of this test."""
    text = text.replace("localhost:8080", f"127.0.0.1:{api.port}").replace("127.0.0.1:8080", f"127.0.0.1:{api.port}")
    for number, (_, port) in enumerate(cluster.addresses):
        text = re.sub(rf"\b{7000 + number}\b", str(port), text)
    return text


def typed(commands: list[Command], folder: Path, environment: dict[str, str]) -> list[str]:
    """Types all commands into one shell; returns what each prints."""
    script = PRELUDE + "".join(f"{command.typed}\necho '{END}'\n" for command in commands)
    done = subprocess.run(
        ["bash", "-c", script],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=110,
        check=False,
    )
    printed = done.stdout.split(f"{END}\n")[:-1]
    assert len(printed) == len(commands), done.stdout
    return printed


@pytest.mark.parametrize("page", [p for p in PAGES if "```console" in p.read_text()], ids=lambda page: page.name)
def test_a_session_prints_what_stands_there(
    page: Path, cluster: LocalCluster, api: Server, environment: dict[str, str], tmp_path: Path
) -> None:
    for name in ("seeds", "docs"):
        (tmp_path / name).symlink_to(ROOT / name)
    commands = console(as_here(page.read_text(), cluster, api))
    if any("AI.SCRIPTSTORE" in command.typed for command in commands):
        pytest.importorskip("torch", reason="TorchScript is torch's")
    assert commands
    wrong = [
        f"$ {command.typed}\n{printed}"
        for command, printed in zip(commands, typed(commands, tmp_path, environment), strict=True)
        if not fits(command.prints, printed if not printed or printed.endswith("\n") else printed + "\n")
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("page", [p for p in PAGES if programs(p)], ids=lambda page: page.name)
def test_a_program_prints_what_its_comments_say(
    page: Path, cluster: LocalCluster, api: Server, environment: dict[str, str], tmp_path: Path
) -> None:
    for code, expected in programs(page):
        done = subprocess.run(
            [sys.executable, "-c", as_here(code, cluster, api)],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            timeout=110,
            check=False,
        )
        assert done.stdout.splitlines() == expected, done.stderr


def test_the_snippet_for_node_runs_in_it(api: Server, cluster: LocalCluster, tmp_path: Path) -> None:
    if (node := shutil.which("node")) is None:
        pytest.skip("there is no Node")
    (code,) = re.findall(r"```js\n(.*?)```", (ROOT / "docs" / "client-javascript.md").read_text(), re.DOTALL)
    (tmp_path / "node_modules").mkdir()
    (tmp_path / "node_modules" / "shardqa").symlink_to(ROOT / "api" / "page")
    (tmp_path / "snippet.mjs").write_text(as_here(code, cluster, api))
    done = subprocess.run([node, "snippet.mjs"], cwd=tmp_path, capture_output=True, text=True, timeout=110, check=False)
    assert done.stdout.splitlines() == ["mill", "Ada Holm mill"], done.stderr
