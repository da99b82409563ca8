"""`shardqa up` and `demo` as a person runs them: ready, Ctrl-C, a second start, ports in use."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from shardqa import keys
from shardqa.cli import service
from shardqa.cluster import local, ports
from shardqa.models import shipped
from tests.nodes import free_port

ROOT = Path(__file__).parents[2]
ENV = {name: value for name, value in os.environ.items() if not name.startswith("SHARDQA_")}


def shardqa(*words: str) -> list[str]:
    return [sys.executable, "-m", "shardqa.cli", *words]


@contextmanager
def foreground(*words: str, until: str) -> Iterator[tuple["subprocess.Popen[str]", str]]:
    """Runs the program until it has printed `until`; yields the process and what it said; it is ended at the end."""
    process = subprocess.Popen(
        shardqa(*words), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=ENV, cwd=ROOT
    )
    assert process.stdout is not None
    output = []
    try:
        for line in process.stdout:
            output.append(line)
            if until in line:
                break
        else:
            pytest.fail(f"{words} ended with {process.wait()} and never said {until!r}:\n{''.join(output)}")
        yield process, "".join(output)
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)


def get(url: str) -> Any:
    with urllib.request.urlopen(url, timeout=90) as reply:
        return json.load(reply)


@pytest.fixture
def place(tmp_path: Path) -> Iterator[tuple[Path, int, int]]:
    """(data directory, free port with its bus port, free port for HTTP); whatever still runs there is stopped."""
    port = free_port()
    yield tmp_path / "data", port, free_port(0)
    service.stop_all(tmp_path / "data")


def test_the_demonstration_answers_and_ctrl_c_stops_everything_it_started(place: tuple[Path, int, int]) -> None:
    data, port, http = place
    options = ("--data", str(data), "--port", str(port), "--http", str(http), "--shards", "1")
    with foreground("demo", "seeds/documents", *options, until="INFO shardqa") as (process, output):
        assert re.search(r"^answer +Marta Ilves", output, re.MULTILINE)
        assert "lake-ysolde" in output
        assert output.count("redis-cli") == 2
        assert f"http://127.0.0.1:{http}/" in output
        assert (
            get(f"http://127.0.0.1:{http}/v1/ask?q=Who+planned+the+reed+beds&corpus=seeds")["answer"] == "Marta Ilves"
        )
        commands = re.findall(r"^try +(redis-cli .*)$", output, re.MULTILINE)
        replies = [subprocess.run(["sh", "-c", c], capture_output=True, text=True, check=True).stdout for c in commands]
        assert "Marta Ilves" in replies[0]
        assert "worker" in replies[1]
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=60) == 0
    found = local.inspect(data)
    assert found is not None
    assert not any(node.running() for node in found.nodes)
    assert not found.http_running()
    assert ports.is_free(port)


def test_what_was_ingested_is_there_after_a_restart(place: tuple[Path, int, int], tmp_path: Path) -> None:
    data, port, http = place
    (tmp_path / "mill.txt").write_text("The mill of Brennick was built in 1820.")
    options = ("--data", str(data), "--port", str(port), "--http", str(http), "--shards", "1")
    up = shardqa("up", *options, "--detach", "--json", "--share-models")
    running = json.loads(subprocess.run(up, env=ENV, check=True, timeout=100, stdout=subprocess.PIPE).stdout)
    assert running["redis"] == f"127.0.0.1:{port}"
    assert running["page"] == f"http://127.0.0.1:{http}/"
    assert [node["port"] for node in running["nodes"]] == [port]
    assert (data / "models").is_dir()
    cli = {**ENV, "SHARDQA_REDIS": f"127.0.0.1:{port}", "SHARDQA_CORPUS": "mills"}
    subprocess.run(shardqa("ingest", str(tmp_path / "mill.txt")), env=cli, check=True, timeout=60)
    stop = shardqa("down", "--data", str(data), "--json")
    down = subprocess.run(stop, env=ENV, check=True, stdout=subprocess.PIPE)
    assert json.loads(down.stdout) == {"data": str(data), "nodes": [port], "http": http}
    words = ("demo", str(tmp_path / "mill.txt"), *options, "--question", "When was the mill built?", "--json")
    with foreground(*words, until='"try"') as (_, output):
        answer = get(f"http://127.0.0.1:{http}/v1/ask?q=When+was+the+mill+built&corpus=mills")
    assert answer["answer"] == "1820"
    demonstration = json.loads(output.splitlines()[-1])
    assert demonstration["answer"]["answer"] == "1820"
    assert demonstration["ingested"]["documents"] == 1
    assert len(demonstration["try"]) == 2


def test_a_demonstration_with_a_pair_reads_german_by_it(place: tuple[Path, int, int], tmp_path: Path) -> None:
    data, port, http = place
    (tmp_path / "mühle.txt").write_text("Die Mühle von Brennick mahlt nur Roggen.")
    pair = (str(shipped.folder()), str(shipped.encoder_folder()))  # they stand for one of many languages
    options = ("--data", str(data), "--port", str(port), "--http", str(http), "--shards", "1", "--pair", *pair)
    words = ("demo", str(tmp_path / "mühle.txt"), *options, "--question", "Was mahlt die Mühle?", "--json")
    with foreground(*words, until='"try"') as (_, output):
        pass
    assert json.loads(output.splitlines()[-1])["answer"]["model"] == keys.MANY_READER


@pytest.mark.parametrize("option", ["--port", "--http"])
def test_a_port_in_use_is_named_with_its_option_and_nothing_starts(place: tuple[Path, int, int], option: str) -> None:
    data, port, http = place
    with socket.socket() as taken:
        taken.bind((ports.HOST, port if option == "--port" else http))
        taken.listen()
        command = shardqa(
            "up", "--data", str(data), "--port", str(port), "--http", str(http), "--shards", "1", "--detach"
        )
        done = subprocess.run(command, env=ENV, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    last = done.stderr.splitlines()[-1]
    assert str(port if option == "--port" else http) in last
    assert option in last
    found = local.inspect(data) if data.exists() else None
    assert found is None or not any(node.running() for node in found.nodes)
