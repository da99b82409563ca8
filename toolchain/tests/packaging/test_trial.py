"""Trying a bundle: fresh isolated processes, Lambda's Runtime API."""

import http.client
import json
import sys
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from shardqa.errors import BadModel, SetupError
from shardqa.models import shipped
from shardqa.models.tokenizer import Tokenizer
from shardqa_toolchain.packaging import runtime_api, trial

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
    with trial.started(root, sys.executable) as process, pytest.raises(BadModel, match="ended with 1"):
        process.ask({})


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
