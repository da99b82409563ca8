"""Lambda's Runtime API on this machine: events go to the runtime client of a function, replies come back.

The interface is that of the AWS Lambda Developer Guide, "Using the Lambda runtime API", version 2018-06-01.
"""

import json
import os
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from uuid import uuid4

from shardqa.errors import BadModel, SetupError

VERSION = "/2018-06-01/runtime"

HANDLER = "lambda_function.handler"

MAX_SECONDS = 60  # for one event, the start of the function included

MAX_BYTES = 6_291_556  # Lambda's quota for a request or reply of a synchronous invocation


@dataclass(frozen=True, slots=True)
class FunctionReply:
    payload: Any  # its reply; where it failed, ``{"errorType", "errorMessage", ...}``
    failed: bool
    seconds: float  # from the event to the reply


class RuntimeApi:
    """The server; one function at a time."""

    def __init__(self) -> None:
        self._events: queue.Queue[tuple[str, bytes]] = queue.Queue()
        self._replies: queue.Queue[tuple[bool, bytes]] = queue.Queue()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    @property
    def address(self) -> str:
        """HOST:PORT, what AWS_LAMBDA_RUNTIME_API holds."""
        return f"127.0.0.1:{self._server.server_address[1]}"

    def invoke(self, event: object, seconds: float = MAX_SECONDS) -> FunctionReply:
        """Send an event to the function and wait; raises BadModel when no reply comes in time."""
        began = time.perf_counter()
        self._events.put((str(uuid4()), json.dumps(event).encode()))
        try:
            is_error, body = self._replies.get(timeout=seconds)
        except queue.Empty:
            raise BadModel(f"the function did not reply within {seconds:g} s; see what it printed") from None
        return FunctionReply(json.loads(body), is_error, time.perf_counter() - began)

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def _next(self) -> tuple[str, bytes]:
        return self._events.get()

    def _reply(self, failed: bool, body: bytes) -> None:
        self._replies.put((failed, body))

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        api = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                if self.path != f"{VERSION}/invocation/next":
                    self.send_error(404)
                    return
                request, event = api._next()
                self.send_response(200)
                for name, value in _headers(request, len(event)).items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(event)

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                verb = self.path.rpartition("/")[2]
                if not self.path.startswith(VERSION) or verb not in ("response", "error"):
                    self.send_error(404)
                    return
                if len(body) > MAX_BYTES:
                    self.send_error(413)
                    return
                self.send_response(202)
                self.send_header("Content-Length", "0")
                self.end_headers()
                api._reply(verb == "error", body)

            def log_message(self, format: str, *args: Any) -> None:
                return

        return Handler


def _headers(request: str, length: int) -> dict[str, str]:
    return {
        "Content-Type": "application/json",
        "Content-Length": str(length),
        "Lambda-Runtime-Aws-Request-Id": request,
        "Lambda-Runtime-Deadline-Ms": str(round((time.time() + MAX_SECONDS) * 1000)),
        "Lambda-Runtime-Invoked-Function-Arn": "arn:aws:lambda:local:000000000000:function:shardqa",
        "Lambda-Runtime-Trace-Id": "Root=1-00000000-000000000000000000000000;Sampled=0",
    }


@contextmanager
def function(root: Path, python: str = sys.executable) -> Iterator[RuntimeApi]:
    """An unpacked bundle run by AWS' own runtime interface client under ``python``, which must have `awslambdaric`.

    Raises SetupError when it has not.
    """
    if subprocess.run([python, "-c", "import awslambdaric"], capture_output=True, check=False).returncode:
        raise SetupError(f"{python} has no runtime interface client; run: {python} -m pip install awslambdaric")
    api = RuntimeApi()
    command = [python, "-B", "-m", "awslambdaric", HANDLER]
    process = subprocess.Popen(command, cwd=root, env=_environment(root, api.address))
    try:
        yield api
    finally:
        process.kill()
        process.wait()
        api.close()


def _environment(root: Path, address: str) -> dict[str, str]:
    """The variables that Lambda sets, as far as a function of ours could see it."""
    return {
        **{name: os.environ[name] for name in ("PATH", "HOME", "TMPDIR") if name in os.environ},
        "AWS_LAMBDA_RUNTIME_API": address,
        "AWS_LAMBDA_FUNCTION_NAME": "shardqa",
        "AWS_LAMBDA_FUNCTION_VERSION": "$LATEST",
        "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": "1769",
        "AWS_LAMBDA_LOG_STREAM_NAME": "local",
        "AWS_LAMBDA_LOG_GROUP_NAME": "/aws/lambda/shardqa",
        "LAMBDA_TASK_ROOT": str(root),
        "PYTHONPATH": str(root),
        "TZ": ":UTC",
    }
