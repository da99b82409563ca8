"""The way in of Cloud Functions and Cloud Run: ``functions-framework --target=answer``."""

import json
from pathlib import Path
from typing import Any

from shardqa_toolchain.packaging.answering import Answerer
from shardqa_toolchain.packaging.serving import HEADERS, Server

server = Server(Answerer(Path(__file__).parent / "model"))


def answer(request: Any) -> tuple[str, int, dict[str, str]]:
    """Answer a request (flask's); one that is no question gets an error that says why."""
    status, reply = server.http(request.method, request.get_data())
    return json.dumps(reply, ensure_ascii=False), status, HEADERS
