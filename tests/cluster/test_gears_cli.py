"""`shardqa gears` on three shards: scripts that register and that run, what is listed, told, logged and removed."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from redis import RedisCluster

from shardqa.cli.gears import app as gears
from shardqa.cluster.local import LocalCluster
from tests.conftest import Output
from tests.nodes import wait_until

Run = Callable[..., str]
WORDS = 120  # keys that the batches read


@pytest.fixture
def run(bare_cluster: LocalCluster, program: Callable[..., Output], monkeypatch: pytest.MonkeyPatch) -> Run:
    """`run("ls", "--json")` in this process: what it prints, on stdout first."""
    monkeypatch.setenv("SHARDQA_REDIS", bare_cluster.seed())  # for what completes words

    def run_(*words: str, code: int = 0) -> str:
        output = program("gears", *words, code=code, SHARDQA_REDIS=bare_cluster.seed())
        return output.stdout + output.stderr

    return run_


@pytest.fixture(scope="module")
def client(bare_cluster: LocalCluster) -> Iterator[Any]:
    port = bare_cluster.state.port
    with RedisCluster(host="127.0.0.1", port=port, decode_responses=True, socket_timeout=120) as client:
        for number in range(WORDS):
            client.set(f"gearscli:{number}", number)
        yield client


def written(folder: Path, code: str, name: str = "script.py") -> str:
    (folder / name).write_text(code)
    return str(folder / name)


def trigger(client: Any, *words: str) -> Any:
    return [client.execute_command("RG.TRIGGER", *words, target_nodes=node) for node in client.get_primaries()]


def stats(run: Run, name: str) -> dict[str, Any]:
    (registration,) = json.loads(run("stats", name, "--json"))["registrations"]
    return dict(registration)


def test_a_function_is_registered_counted_logged_and_removed(run: Run, client: Any, tmp_path: Path) -> None:
    code = "def f(r):\n    log('got ' + r[1])\n    return 1 // int(r[1])\n"
    path = written(tmp_path, code + "GB('CommandReader').map(f).register(trigger='cli:inverse', mode='async_local')")
    assert run("run", path, "ID", "cli-inverse") == "registered\n"
    assert "already exists; send UPGRADE" in run("run", path, "ID", "cli-inverse", code=1)
    assert trigger(client, "cli:inverse", "1") == [["1"]] * 3
    with pytest.raises(Exception, match="ZeroDivisionError"):
        trigger(client, "cli:inverse", "0")

    shown = stats(run, "cli:inverse")
    assert (shown["session"], len(shown["shards"]), shown["mode"]) == ("cli-inverse", 3, "async_local")
    assert (shown["triggered"], shown["succeeded"], shown["failed"], shown["queue"]) == (4, 3, 1, 0)
    assert sum(count for _, count in shown["histogram_us"]) == 4
    assert 0 < shown["p50_ms"] <= shown["p99_ms"]
    assert "ZeroDivisionError" in run("stats", "cli-inverse")

    lines = [line for line in json.loads(run("logs", "--json"))["lines"] if "cli:inverse" in line["whose"]]
    assert sorted(line["text"] for line in lines if line["level"] == "notice") == ["got 0", *["got 1"] * 3]
    assert len({line["shard"] for line in lines}) == 3
    assert "ZeroDivisionError" in run("logs", "--grep", "cli:inverse", "--lines", "1")

    row = next(line for line in run("ls").splitlines() if "cli:inverse" in line).split("\t")
    assert row[0] == "CommandReader"
    assert row[3:] == ["cli-inverse", "async_local", "3", "3", "1", "0"]
    assert "unregistered cli:inverse" in run("rm", "cli-inverse")
    assert "there is no function" in run("rm", "cli-inverse", code=1)
    assert "there is no function" in run("stats", "cli:inverse", code=1)


def test_a_batch_prints_its_results_and_what_each_shard_read(run: Run, client: Any, tmp_path: Path) -> None:
    path = written(tmp_path, "GB('KeysOnlyReader').count().run('gearscli:*')")
    assert run("run", path).splitlines()[0] == str(WORDS)
    shown = json.loads(run("run", path, "--json"))
    assert (shown["results"], shown["errors"], shown["status"]) == ([str(WORDS)], [], "done")
    assert sum(shown["records"].values()) == WORDS
    assert len(shown["records"]) == 3
    assert shown["id"] not in run("ls"), "it is dropped once its results are there"


def test_errors_of_records_end_a_batch_with_4_and_of_the_script_with_1(run: Run, client: Any, tmp_path: Path) -> None:
    path = written(tmp_path, "GB().map(lambda r: 10 // int(r['value'])).count().run('gearscli:?')")
    lines = run("run", path, code=4).splitlines()
    assert lines[0] == "9"
    assert "ZeroDivisionError" in lines[1]
    assert "NameError" in run("run", written(tmp_path, "nonsense"), code=1)
    lines = run("run", written(tmp_path, "nonsense"), "--json", code=1).splitlines()
    assert json.loads(lines[0])["code"] == "script_failed"


def test_a_detached_execution_is_listed_and_removed_by_its_id(run: Run, client: Any, tmp_path: Path) -> None:
    path = written(tmp_path, "GB('KeysOnlyReader').count().run('gearscli:*')")
    id = json.loads(run("run", path, "UNBLOCKING", "--json"))["id"]

    def listed() -> dict[str, Any]:
        executions = json.loads(run("ls", "--json"))["executions"]
        return dict(next(execution for execution in executions if execution["id"] == id))

    wait_until(lambda: listed()["status"] == "done", "the execution is done")
    assert (listed()["records"], len(listed()["shards"])) == (WORDS, 3)
    assert f"dropped execution {id}" in run("rm", id)
    assert id not in run("ls")


def started(bare_cluster: LocalCluster, *words: str) -> subprocess.Popen[str]:
    environment = {**os.environ, "SHARDQA_REDIS": bare_cluster.seed()}
    command = [sys.executable, "-m", "shardqa.cli", "gears", *words]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def interrupted(process: subprocess.Popen[str]) -> int:
    process.send_signal(signal.SIGINT)
    try:
        return process.wait(60)
    finally:
        process.kill()
        process.communicate()


def test_ctrl_c_aborts_the_execution_that_is_followed(
    bare_cluster: LocalCluster, run: Run, client: Any, tmp_path: Path
) -> None:
    code = "import asyncio\nasync def wait(r):\n    execute('SET', f'gearscli-begun:{{{hashtag()}}}', 1)\n"
    code += "    await asyncio.sleep(600)\n"
    path = written(tmp_path, code + "GB('ShardsIDReader').map(wait).run()")
    following = started(bare_cluster, "run", path)
    try:
        wait_until(lambda: len(client.keys("gearscli-begun:*", target_nodes="primaries")) == 3, "all shards wait")
    finally:
        assert interrupted(following) == 130

    def running() -> list[Any]:
        return [one for one in json.loads(run("ls", "--json"))["executions"] if one["status"] == "running"]

    wait_until(lambda: not running(), "no shard runs it any more")


def test_functions_of_shardqa_itself_are_not_removed_by_name(
    run: Run, client: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = written(tmp_path, "GB('CommandReader').register(trigger='cli:own')")
    run("run", path, "ID", "cli-own")
    with monkeypatch.context() as patched:
        patched.setattr(gears, "OWN", "cli-own")
        assert "no question is answered without it" in run("rm", "cli:own", code=2)
    assert "unregistered cli:own" in run("rm", "cli:own")


def test_functions_that_each_shard_registered_for_itself_are_listed_once(run: Run, cluster: LocalCluster) -> None:
    registered = json.loads(run("ls", "--json"))["registrations"]
    own = {(one["reader"], one["name"]): one for one in registered if one["session"] == "shardqa"}
    assert len(own) == sum(one["session"] == "shardqa" for one in registered) > 5
    assert {len(one["shards"]) for one in own.values()} == {len(cluster.addresses)}
    assert {len(set(one["ids"])) for one in own.values()} == {len(cluster.addresses)}
