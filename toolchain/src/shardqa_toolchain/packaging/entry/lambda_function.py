"""AWS Lambda's way in: set the function's handler to ``lambda_function.handler``."""

from pathlib import Path
from typing import Any

from shardqa_toolchain.packaging.answering import Answerer
from shardqa_toolchain.packaging.serving import Server

server = Server(Answerer(Path(__file__).parent / "model"))


def handler(event: Any, context: Any) -> dict[str, Any]:
    """Answer an event; one that is no question gets an error that says why."""
    return server.event(event)
