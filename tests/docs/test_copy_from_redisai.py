"""The program docs/examples/copy_from_redisai.py copies between two nodes, whole."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.nodes import Node

pytest.importorskip("onnx", reason="the model of this test is made with onnx")
from tests.onnx_models import adder

PROGRAM = Path(__file__).parents[2] / "docs" / "examples" / "copy_from_redisai.py"
SOURCE = "def twice(tensors: List[Tensor], keys: List[str], args: List[str]):\n    return tensors[0] * 2\n"
DEBUG = (("enable-debug-command", "local"),)
LARGE = ("MODEL_CHUNK_SIZE", "64")  # a model comes in parts
TENSORS = (
    ("t:float", "FLOAT", 2, 1, "VALUES", 1.5, 2),
    ("t:int", "INT8", 3, "VALUES", -1, 0, 1),
    ("t:text", "STRING", 2, "VALUES", "two words", ""),
    ("t:bool", "BOOL", 2, "VALUES", 1, 0),
    ("other", "FLOAT", 1, "VALUES", 7),
)


def copy(*words: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, str(PROGRAM), *words]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)


def test_tensors_models_and_scripts_are_copied_whole(start_node: Callable[..., Node]) -> None:
    pytest.importorskip("torch", reason="TorchScript is torch's")
    old, new = (start_node(extra=DEBUG, module_arguments=LARGE) for _ in range(2))
    client: Any = old.client(socket_timeout=60)
    for words in TENSORS:
        client.execute_command("AI.TENSORSET", *words)
    batching = ("TAG", "v1", "BATCHSIZE", 8, "MINBATCHSIZE", 2, "MINBATCHTIMEOUT", 5)
    client.execute_command("AI.MODELSTORE", "m", "ONNX", "CPU:1", *batching, "BLOB", adder())
    client.execute_command("AI.SCRIPTSTORE", "s", "CPU", "TAG", "v2", "ENTRY_POINTS", 1, "twice", "SOURCE", SOURCE)
    client.set("plain", "left alone")
    client.pexpire("t:int", 600_000)
    urls = [f"redis://127.0.0.1:{node.port}" for node in (old, new)]

    assert copy(*urls, "t:*").stdout == "copied 4 tensors, 0 models, 0 scripts\n"
    done = copy(*urls)
    assert (done.stdout, done.returncode) == ("copied 5 tensors, 1 models, 1 scripts\n", 0), done.stderr
    keys = [words[0] for words in TENSORS] + ["m", "s"]
    target: Any = new.client()
    assert sorted(key.decode() for key in target.scan_iter()) == sorted(keys)
    digests = [node.execute_command("DEBUG", "DIGEST-VALUE", *keys) for node in (client, target)]
    assert digests[0] == digests[1]
    assert client.execute_command("AI.MODELGET", "m", "META") == target.execute_command("AI.MODELGET", "m", "META")
    assert 0 < target.pttl("t:int") <= 600_000
    assert target.pttl("t:float") == -1

    target.config_set("maxmemory", 1)
    done = copy(*urls)
    assert (done.stdout, done.returncode) == ("copied 0 tensors, 0 models, 0 scripts\n", 1)
    assert "t:float was not copied: " in done.stderr
