"""The shipped reader's bundles run for real: alone, under AWS' runtime interface client, under functions-framework."""

import http.client
import json
import platform
import subprocess
import sys
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from shardqa.models import shipped
from shardqa_toolchain.packaging import bundles, runtime_api, trial, wheels
from shardqa_toolchain.packaging.answering import Answerer
from shardqa_toolchain.packaging.serving import Server
from shardqa_toolchain.packaging.target import Target
from tests.nodes import free_port

EVENTS: list[Any] = [
    {"question": trial.QUESTION, "passage": trial.PASSAGE},
    {"question": trial.QUESTION, "passages": ["Ferries leave at nine.", "The ferry left. " * 300 + trial.PASSAGE]},
    {"body": json.dumps({"question": trial.QUESTION, "passage": trial.PASSAGE})},
    {"question": "Who wrote Hamlet?", "passage": "Ferries leave the pier at nine."},
    {"question": trial.QUESTION},
    [],
]

FOREIGN = """
import sys
sys.path.insert(0, sys.argv[1])
import lambda_function
lambda_function.handler({"question": "Who?", "passage": "Nobody."}, None)
files = [getattr(module, "__file__", None) or "" for module in sys.modules.values()]
print([name for name in files if "site-packages" in name or "shardqa" in name and not name.startswith(sys.argv[1])])
"""


@pytest.fixture(scope="module")
def target() -> Target:
    glibc = platform.libc_ver()[1]
    return Target.of(f"{sys.version_info.major}.{sys.version_info.minor}", platform.machine(), glibc)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory, target: Target) -> Iterator[Path]:
    """The shipped reader's Lambda zip of the libraries installed here, unpacked."""
    out = tmp_path_factory.mktemp("bundle") / "reader.zip"
    bundle = bundles.lambda_zip(shipped.folder(), out, target, wheels.pins(), python=sys.executable)
    assert bundle.zipped < 90e6
    assert bundle.unzipped < 250e6
    with trial.unpacked(out) as folder:
        yield folder


@pytest.fixture(scope="module")
def replies() -> list[Any]:
    """The reader's replies to the events here, without a bundle; as JSON carries them."""
    server = Server(Answerer(shipped.folder()))
    found: list[Any] = json.loads(json.dumps([server.event(event) for event in EVENTS]))
    return found


def test_a_bundle_says_what_the_reader_says_with_nothing_else_to_import(root: Path, replies: list[Any]) -> None:
    with trial.started(root, sys.executable) as process:
        assert [process.ask(event)["reply"] for event in EVENTS] == replies


def test_a_bundle_loads_its_own_files_only(root: Path) -> None:
    command = [sys.executable, "-I", "-S", "-B", "-c", FOREIGN, str(root)]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip() == "[]"


def test_a_bundle_answers_under_the_runtime_interface_client(root: Path, replies: list[Any]) -> None:
    pytest.importorskip("awslambdaric", reason="pip install awslambdaric")
    with runtime_api.function(root) as api:
        invoked = [api.invoke(event) for event in EVENTS]
    assert [reply.payload for reply in invoked] == replies
    assert not any(reply.failed for reply in invoked)


@pytest.fixture
def port(tmp_path: Path, target: Target) -> Iterator[int]:
    """Functions Framework serving a bundle's folder."""
    if find_spec("functions_framework") is None:
        pytest.skip("functions-framework is not there: pip install functions-framework")
    folder = tmp_path / "function"
    bundles.functions_folder(shipped.folder(), folder, target, wheels.pins())
    number = free_port(1)
    options = ["--target=answer", "--source=main.py", "--host=127.0.0.1", f"--port={number}"]
    framework = "from functions_framework._cli import _cli; _cli()"
    process = subprocess.Popen([sys.executable, "-c", framework, *options], cwd=folder)
    try:
        wait_for(number, process)
        yield number
    finally:
        process.terminate()
        process.wait()


def wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    while process.poll() is None:
        try:
            send(port, "GET", b"")
        except OSError:
            time.sleep(0.1)
        else:
            return
    raise AssertionError("functions-framework ended")


def send(port: int, method: str, body: bytes) -> tuple[int, Any]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        connection.request(method, "/", body)
        reply = connection.getresponse()
        return reply.status, json.loads(reply.read())
    finally:
        connection.close()


def test_a_folder_answers_under_functions_framework(port: int, replies: list[Any]) -> None:
    assert send(port, "POST", json.dumps(EVENTS[0]).encode()) == (200, replies[0])
    assert send(port, "POST", json.dumps(EVENTS[4]).encode()) == (422, replies[4])
    assert send(port, "POST", b"no JSON")[0] == 422
    assert send(port, "GET", b"")[0] == 405
