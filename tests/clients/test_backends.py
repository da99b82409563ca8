"""TF, TFLITE and OPENVINO on a node whose worker has tensorflow, ai-edge-litert and openvino: 1.8 GB, made once."""

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from redis.exceptions import ResponseError

from tests.environments import interpreter_of
from tests.nodes import running_node, wait_until

ROOT = Path(__file__).parents[2]
LOCK = (ROOT / "requirements-backends.lock").read_text()
PACKAGES = [line for line in LOCK.splitlines() if line and not line.startswith("#")]
ENDS = ("INPUTS", 2, "a", "b", "OUTPUTS", 1, "mul")
Run = Callable[..., Any]

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]  # made once, the environment is downloaded


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    """Commands on a node with models tf, lite and vino, tensors a and b; `file:NAME` is a file's content."""
    python = interpreter_of("backends", PACKAGES)
    folder = tmp_path_factory.mktemp("models")
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TF_CPP_MIN_LOG_LEVEL": "3"}
    words = [str(python), str(Path(__file__).with_name("make_models.py")), str(folder)]
    subprocess.run(words, check=True, env=environment, cwd=folder)
    patient = ("HEARTBEAT", "20000")  # tensorflow's import keeps the interpreter's lock for long on a busy machine
    with running_node(tmp_path_factory.mktemp("node"), python=python, module_arguments=patient) as node:
        client: Any = node.client(protocol=2, socket_timeout=300)
        wait_until(lambda: client.info("shardqa")["shardqa_worker_state"] == "ready", "the worker is ready")

        def run(*words: Any) -> Any:
            words = tuple(words[0].split()) if len(words) == 1 else words
            files = (w.removeprefix("file:") if isinstance(w, str) and w.startswith("file:") else None for w in words)
            return client.execute_command(
                *((folder / file).read_bytes() if file else word for word, file in zip(words, files, strict=True))
            )

        run("AI.MODELSTORE", "tf", "TF", "CPU", "BATCHSIZE", 4, *ENDS, "BLOB", "file:graph.pb")
        run("AI.MODELSTORE lite TFLITE CPU BLOB file:double.tflite")
        run("AI.MODELSTORE vino OPENVINO CPU BLOB file:adder.onnx")
        run("AI.TENSORSET a FLOAT 1 2 VALUES 2 3")
        run("AI.TENSORSET b FLOAT 1 2 VALUES 4 5")
        yield run


def values(run: Run, key: str) -> list[float]:
    return [float(value) for value in run("AI.TENSORGET", key, "VALUES")]


def test_a_frozen_graph_runs_between_the_ends_that_were_named(run: Run) -> None:
    assert run("AI.MODELGET tf META")[10:14] == [b"inputs", [b"a", b"b"], b"outputs", [b"mul"]]
    assert run("AI.MODELEXECUTE tf INPUTS 2 a b OUTPUTS 1 c") == b"OK"
    assert values(run, "c") == [8, 15]


def test_a_tflite_file_runs(run: Run) -> None:
    assert run("AI.MODELEXECUTE lite INPUTS 1 a OUTPUTS 1 c") == b"OK"
    assert values(run, "c") == [4, 6]


def test_an_onnx_file_runs_in_openvino(run: Run) -> None:
    run("AI.TENSORSET row FLOAT 2 VALUES 1 2")
    assert run("AI.MODELEXECUTE vino INPUTS 2 row row OUTPUTS 1 c") == b"OK"
    assert values(run, "c") == [2, 4]


def test_the_old_commands_run_a_graph_too(run: Run) -> None:
    assert run("AI.MODELSET old TF CPU INPUTS a b OUTPUTS mul BLOB file:graph.pb") == b"OK"
    assert run("AI.MODELRUN old INPUTS a b OUTPUTS c") == b"OK"
    assert values(run, "c") == [8, 15]


@pytest.mark.parametrize(
    ("kind", "ends", "values"),
    [("STRING", ("words", "said"), ["one", "two"]), ("BFLOAT16", ("brains", "same"), ["1.5", "2"])],
)
def test_strings_and_bfloat16_pass_through_a_graph(
    run: Run, kind: str, ends: tuple[str, str], values: list[str]
) -> None:
    run("AI.MODELSTORE", "same", "TF", "CPU", "INPUTS", 1, ends[0], "OUTPUTS", 1, ends[1], "BLOB", "file:graph.pb")
    run("AI.TENSORSET", "t", kind, len(values), "VALUES", *values)
    assert run("AI.MODELEXECUTE same INPUTS 1 t OUTPUTS 1 c") == b"OK"
    assert run("AI.TENSORGET c META VALUES")[1] == kind.encode()
    assert [value.decode() for value in run("AI.TENSORGET c VALUES")] == values


@pytest.mark.parametrize(
    ("command", "text"),
    [
        ("AI.MODELSTORE x TF CPU INPUTS 1 none OUTPUTS 1 mul BLOB file:graph.pb", 'Input node named "none" not found'),
        ("AI.MODELSTORE x TF CPU INPUTS 1 a OUTPUTS 1 none BLOB file:graph.pb", 'Output node named "none" not found'),
        ("AI.MODELSTORE x TF CPU INPUTS 1 a OUTPUTS 1 mul BLOB file:adder.onnx", "Invalid GraphDef"),
        ("AI.MODELSTORE x TF CPU INPUTS 1 a OUTPUTS 1 mul BLOB file:graph.pb", "b"),  # mul hangs on b as well
        ("AI.MODELSTORE x TF GPU INPUTS 2 a b OUTPUTS 1 mul BLOB file:graph.pb", "GPU is not available"),
        ("AI.MODELSTORE x TFLITE CPU BLOB file:adder.onnx", "."),
        ("AI.MODELSTORE x TFLITE GPU BLOB file:double.tflite", "GPU is not available"),
        ("AI.MODELSTORE x OPENVINO CPU BLOB file:graph.pb", "."),
        ("AI.MODELSTORE x OPENVINO GPU BLOB file:adder.onnx", "GPU is not available"),
        ("AI.MODELEXECUTE tf INPUTS 1 a OUTPUTS 1 c", "Number of keys given as INPUTS here does not match"),
        ("AI.MODELEXECUTE vino INPUTS 1 a OUTPUTS 1 c", "Number of keys given as INPUTS here does not match"),
        ("AI.MODELEXECUTE lite INPUTS 2 a b OUTPUTS 1 c", "Number of keys given as INPUTS here does not match"),
    ],
)
def test_what_goes_wrong_is_said(run: Run, command: str, text: str) -> None:
    with pytest.raises(ResponseError, match=text):
        run(command)


def test_a_tensor_of_the_wrong_type_fails_that_run_alone(run: Run) -> None:
    run("AI.TENSORSET whole INT32 1 2 VALUES 1 2")
    with pytest.raises(ResponseError):
        run("AI.MODELEXECUTE tf INPUTS 2 whole b OUTPUTS 1 c")
    assert run("AI.MODELEXECUTE tf INPUTS 2 a b OUTPUTS 1 c") == b"OK"


@pytest.mark.parametrize("backend", ["TF", "TFLITE", "OPENVINO"])
def test_a_backend_that_is_there_is_said_to_be(run: Run, backend: str) -> None:
    assert run("AI.CONFIG", "LOADBACKEND", backend, str(ROOT)) == b"OK"
