"""Trying a bundle: fresh isolated processes, a rationed processor, Lambda's Runtime API."""

import http.client
import json
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from shardqa.errors import BadModel, SetupError
from shardqa.models import shipped
from shardqa.models.tokenizer import Tokenizer
from shardqa_toolchain.packaging import rations, runtime_api, trial

NEXT = f"{runtime_api.VERSION}/invocation/next"


@pytest.fixture
def api() -> Iterator[runtime_api.RuntimeApi]:
    found = runtime_api.RuntimeApi()
    yield found
    found.close()


def bundle(folder: Path, handler: str) -> Path:
    (folder / "lambda_function.py").write_text(handler)
    return folder


def request(
    api: runtime_api.RuntimeApi, method: str, path: str, body: bytes = b""
) -> tuple[http.client.HTTPResponse, bytes]:
    """The reply and its body."""
    with closing(http.client.HTTPConnection(api.address, timeout=10)) as connection:
        connection.request(method, path, body)
        reply = connection.getresponse()
        return reply, reply.read()


def serve_one(api: runtime_api.RuntimeApi, verb: str) -> threading.Thread:
    """A runtime client for one event, which replies with what it got."""

    def serve() -> None:
        event, body = request(api, "GET", NEXT)
        name = event.headers["Lambda-Runtime-Aws-Request-Id"]
        request(api, "POST", f"{runtime_api.VERSION}/invocation/{name}/{verb}", body)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    return thread


def test_a_process_replies_to_events_one_by_one(tmp_path: Path) -> None:
    root = bundle(tmp_path, "def handler(event, context): return {'twice': event * 2}\n")
    with trial.started(root, sys.executable) as process:
        assert [process.ask(number)["reply"] for number in (1, 2)] == [{"twice": 2}, {"twice": 4}]


def test_a_process_sees_nothing_but_the_bundle(tmp_path: Path) -> None:
    root = bundle(tmp_path, "import numpy\n")
    with trial.started(root, sys.executable) as process, pytest.raises(SetupError, match="ended with 1"):
        process.ask({})


@pytest.mark.parametrize("groups", [rations.CGROUPS, Path("/nowhere")], ids=["quota", "stop and go"])
def test_a_rationed_process_gets_less_of_a_processor(groups: Path) -> None:
    process = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        with rations.rationed(process.pid, 0.2, groups) as ration:
            assert ration in ("quota", "stop and go")
            before, began = seconds_of(process.pid), time.monotonic()
            time.sleep(1)
            share = (seconds_of(process.pid) - before) / (time.monotonic() - began)
        assert share < 0.6
    finally:
        process.kill()
        process.wait()


def seconds_of(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / 100


def test_the_curve_has_a_point_for_each_share_and_is_drawn(tmp_path: Path) -> None:
    root = bundle(tmp_path, "def handler(event, context): return {}\n")
    shutil.copytree(shipped.folder(), root / "model")
    points = trial.ram_curve(root, sys.executable, (0.5, 2.0))
    assert [(point.share, point.ram_mb) for point in points] == [(0.5, 884), (2.0, 3538)]
    assert [points[0].ration in ("quota", "stop and go"), points[1].ration] == [True, "none"]
    assert "0.5 vCPU, 884 MB" in trial.drawn(points)


def test_a_bundle_that_answers_otherwise_than_its_reader_is_told(tmp_path: Path) -> None:
    root = bundle(tmp_path, "def handler(event, context): return {'answer': 'no'}\n")
    with pytest.raises(BadModel, match=r"the bundle says .'answer': 'no'."):
        trial.check_equal(root, sys.executable, shipped.folder())


def test_the_measured_row_has_the_tokens_that_it_says() -> None:
    event = trial.row_event(shipped.folder())
    tokenizer = Tokenizer.load(shipped.folder())
    assert len(tokenizer.question(event["question"])) + len(tokenizer.passage(event["passage"])) + 3 == trial.ROW_TOKENS


def test_the_runtime_api_hands_out_events_and_takes_replies_and_failures(api: runtime_api.RuntimeApi) -> None:
    for verb, failed in (("response", False), ("error", True)):
        thread = serve_one(api, verb)
        reply = api.invoke({"a": 1}, seconds=10)
        thread.join()
        assert (reply.payload, reply.failed) == ({"a": 1}, failed)


def test_the_runtime_api_refuses_other_paths_and_gives_up_who_never_replies(api: runtime_api.RuntimeApi) -> None:
    assert request(api, "GET", "/2018-06-01/other")[0].status == 404
    assert request(api, "POST", "/other/response", json.dumps({}).encode())[0].status == 404
    with pytest.raises(BadModel, match="did not reply"):
        api.invoke({}, seconds=0.05)


def test_an_interpreter_without_the_runtime_client_is_refused(tmp_path: Path) -> None:
    script = tmp_path / "python"
    script.write_text("#!/bin/sh\nexit 1\n")
    script.chmod(0o755)
    with pytest.raises(SetupError, match="awslambdaric"), runtime_api.function(tmp_path, str(script)):
        pass
