"""The stubs of `redisAI` say what the worker gives to functions, and mypy takes a script by them."""

import ast
import inspect
import subprocess
import sys
from pathlib import Path
from typing import Any, cast

import pytest

from shardqa.tensors import DTYPES
from shardqa.worker.ai import redis_ai
from shardqa.worker.ai.dag_runner import DagRunner

ROOT = Path(__file__).parents[4]
STUB = ROOT / "src" / "redisAI-stubs" / "__init__.pyi"
SCRIPT = Path(__file__).with_name("sample_redis_ai.py")
TREE = ast.parse(STUB.read_text())
FUNCTIONS = {node.name: node for node in TREE.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}
OWN: dict[str, Any] = {
    name: value
    for name, value in vars(redis_ai.module(*cast(Any, (None, None, None)))).items()
    if inspect.isroutine(value)
}


def parameters(function: ast.FunctionDef | ast.AsyncFunctionDef) -> list[tuple[str, bool]]:
    """(name, has a default) of each."""
    names = [one.arg for one in function.args.args if one.arg != "self"]
    required = len(names) - len(function.args.defaults)
    return [(name, at >= required) for at, name in enumerate(names)]


def of_worker(value: Any) -> list[tuple[str, bool]]:
    found = inspect.signature(value).parameters.values()
    return [(one.name, one.default is not one.empty) for one in found if one.name != "self"]


def test_the_stubs_have_the_names_of_the_workers_module() -> None:
    assert set(FUNCTIONS) == set(OWN)


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_a_function_of_the_stubs_takes_what_the_workers_takes(name: str) -> None:
    assert parameters(FUNCTIONS[name]) == of_worker(OWN[name])
    assert isinstance(FUNCTIONS[name], ast.AsyncFunctionDef) == inspect.iscoroutinefunction(OWN[name])
    assert ast.get_docstring(FUNCTIONS[name])


def test_a_graph_of_the_stubs_has_the_methods_of_the_workers() -> None:
    stub = next(node for node in TREE.body if isinstance(node, ast.ClassDef) and node.name == "DagRunner")
    methods = {node.name: node for node in stub.body if isinstance(node, ast.FunctionDef)}
    own = {name for name, value in vars(DagRunner).items() if inspect.isfunction(value) and name[0].isupper()}
    assert set(methods) == own
    for name, method in methods.items():
        assert parameters(method) == of_worker(getattr(DagRunner, name)), name


def test_the_types_of_the_stubs_are_those_of_tensors() -> None:
    named = next(node for node in TREE.body if isinstance(node, ast.AnnAssign) and ast.unparse(node.target) == "_Type")
    words = {node.value for node in ast.walk(cast(ast.expr, named.value)) if isinstance(node, ast.Constant)}
    assert words == {*DTYPES, "STRING"}


def test_mypy_takes_a_users_script_and_finds_its_mistakes(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.py"
    wrong.write_text(
        "import redisAI as r\nr.createModelRunner(1)\nr.modelRunnerAddInput(r.createModelRunner('m'), 'x')\n"
    )
    stubs = (str(STUB), str(ROOT / "src" / "shardqa" / "gears" / "__init__.pyi"))
    command = [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", "--follow-imports=skip", *stubs]
    done = subprocess.run(
        [*command, str(SCRIPT), str(wrong)], cwd=ROOT, capture_output=True, text=True, timeout=110, check=False
    )
    assert SCRIPT.name not in done.stdout
    assert "wrong.py:2" in done.stdout
    assert "wrong.py:3" in done.stdout
    assert "import-not-found" not in done.stdout
