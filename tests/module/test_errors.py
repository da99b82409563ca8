"""Errors of AI.* and RG.* come before anything is changed, in RedisAI's words: errors.txt has one a line."""

from pathlib import Path

import pytest

from .servers import Server  # noqa: TID251 (this package is tests/module)

ROWS = [line.split(" -> ") for line in Path(__file__).with_name("errors.txt").read_text().splitlines()]
LONG = "t" * 65537


@pytest.fixture(scope="module")
def node(shared: tuple[Server, Server]) -> Server:
    client = shared[0].client()
    client.execute_command("AI.TENSORSET", "a", "FLOAT", 1)
    client.execute_command("AI.TENSORSET", "t", "INT8", 1)
    client.execute_command("AI.MODELSTORE", "m", "ONNX", "CPU", "BLOB", "x")
    client.execute_command("AI.SCRIPTSTORE", "s", "CPU", "ENTRY_POINTS", 1, "f", "SOURCE", "x")
    client.set("text", "x")
    return shared[0]


@pytest.mark.parametrize(("words", "error"), ROWS)
def test_an_error_has_the_known_text_and_changes_nothing(node: Server, words: str, error: str) -> None:
    line = words.encode().decode("unicode_escape").replace("LONG", LONG)
    assert node.error(*line.split(" ")).lower() == error.lower()
    assert node.client().execute_command("AI.TENSORGET", "t", "META") == [b"dtype", b"INT8", b"shape", [1]]
    assert node.info()["pending_requests"] == 0


def test_a_server_that_takes_no_chunk_size_keeps_the_old_one(node: Server) -> None:
    """Found by torture: 0 was refused and taken all the same, and AI.MODELGET divided by it."""
    assert node.client().execute_command("AI.CONFIG", "GET", "MODEL_CHUNK_SIZE") == 511 << 20
    assert node.client().execute_command("AI.MODELGET", "m", "BLOB") == b"x"
