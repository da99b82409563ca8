"""The stubs of shardqa.gears and redisAI say what the worker gives to scripts: names, parameters, defaults, options."""

import ast
import inspect
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TypeAlias, cast

import pytest

import shardqa.gears
from shardqa.tensors import DTYPES
from shardqa.worker.ai import redis_ai
from shardqa.worker.ai.dag_runner import DagRunner
from shardqa.worker.gears.interpreters.process import FarSession
from shardqa.worker.gears.pipeline.futures import GearsFuture
from shardqa.worker.gears.sessions import script_functions
from shardqa.worker.gears.sessions.builder import Builder
from shardqa.worker.gears.sessions.builder_options import MODES, READERS, REGISTER_OPTIONS, RUN_OPTIONS
from shardqa.worker.gears.sessions.script_module import HIDDEN
from shardqa.worker.gears.sessions.session import Session

ROOT = Path(__file__).parents[4]
GEARS, REDIS_AI = ROOT / "worker" / "local" / "__init__.pyi", ROOT / "src" / "redisAI-stubs" / "__init__.pyi"
SCRIPTS = [Path(__file__).with_name(name) for name in ("sample_script.py", "sample_redis_ai.py")]
TREE, TREE_OF_AI = ast.parse(GEARS.read_text()), ast.parse(REDIS_AI.read_text())
CLASSES = {"GearsBuilder": Builder, "gearsFuture": GearsFuture, "DagRunner": DagRunner}
BEYOND = {"plan_of_run"}  # of the builder: for the local runner, not for scripts
UNSAID = object()  # a default that the stub only names as `...`
WRONG = """
import redisAI
from shardqa.gears import GB, log
GB('KeyReader').mapp(log).register(trigger=1)
redisAI.createModelRunner(1)
redisAI.modelRunnerAddInput(redisAI.createModelRunner('m'), 'x')
"""

Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef


def names_of_gears() -> dict[str, Any]:
    host = SimpleNamespace(cluster=SimpleNamespace(hashtag=lambda: 0), calls=None, threads=None, runtime_of=lambda _: 0)
    names = script_functions.namespace(cast(script_functions.ScriptHost, host), cast(Session, None))
    return {name: value for name, value in names.items() if name not in HIDDEN}


def names_of_redis_ai() -> dict[str, Any]:
    module = vars(redis_ai.module(*cast(Any, (None, None, None))))
    return {name: value for name, value in module.items() if inspect.isroutine(value)}


def functions_of(body: list[ast.stmt]) -> dict[str, Function]:
    return {node.name: node for node in body if isinstance(node, Function)}


def class_of(name: str) -> ast.ClassDef:
    nodes = (*TREE.body, *TREE_OF_AI.body)
    return next(node for node in nodes if isinstance(node, ast.ClassDef) and node.name == name)


def positional(function: Function) -> list[tuple[str, object]]:
    """(name, default) of what has a place; no default: the parameter's own mark."""
    arguments = [one.arg for one in function.args.args if one.arg != "self"]
    values = [UNSAID if ast.unparse(one) == "..." else ast.literal_eval(one) for one in function.args.defaults]
    required: list[object] = [inspect.Parameter.empty] * (len(arguments) - len(values))
    return list(zip(arguments, required + values, strict=True))


def check_same(stub: Function, value: Any, exact: bool = True) -> None:
    """The parameters of both, and their defaults: all that can be written down, or with `exact` off those that are."""
    own = inspect.signature(value).parameters.values()
    places = [one for one in own if one.name != "self" and one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD)]
    assert [name for name, _ in positional(stub)] == [one.name for one in places]
    for (_, default), one in zip(positional(stub), places, strict=True):
        assert (default is one.empty) == (one.default is one.empty), one.name
        assert default == one.default or (default is UNSAID and (callable(one.default) or not exact)), one.name
    assert bool(stub.args.vararg) == any(one.kind is one.VAR_POSITIONAL for one in own)
    assert isinstance(stub, ast.AsyncFunctionDef) == inspect.iscoroutinefunction(value)


def literal(tree: ast.Module, name: str) -> set[str]:
    """The words of a Literal that the stub names."""
    found = next(node for node in tree.body if isinstance(node, ast.AnnAssign) and ast.unparse(node.target) == name)
    return {str(node.value) for node in ast.walk(cast(ast.expr, found.value)) if isinstance(node, ast.Constant)}


def test_the_stubs_have_the_names_that_a_script_finds() -> None:
    exported = next(node.value for node in TREE.body if isinstance(node, ast.Assign) and "__all__" in ast.unparse(node))
    assert set(ast.literal_eval(exported)) == set(names_of_gears()) == set(shardqa.gears.__all__)
    assert set(functions_of(TREE_OF_AI.body)) == set(names_of_redis_ai())
    process = cast(Any, SimpleNamespace(threads=None, pool=None))  # of an interpreter
    assert set(FarSession(process, 1, "", "").names) == {*names_of_gears(), *HIDDEN}


@pytest.mark.parametrize("name", sorted(functions_of([*TREE.body, *TREE_OF_AI.body])))
def test_a_function_of_the_stubs_takes_what_the_workers_takes(name: str) -> None:
    stub = functions_of([*TREE.body, *TREE_OF_AI.body])[name]
    check_same(stub, (names_of_gears() | names_of_redis_ai())[name], exact=name in names_of_gears())
    assert ast.get_docstring(stub)


@pytest.mark.parametrize("name", CLASSES)
def test_a_class_of_the_stubs_has_the_methods_of_the_workers(name: str) -> None:
    own = {key: value for key, value in vars(CLASSES[name]).items() if inspect.isfunction(value)}
    public = {key for key in own if (key[0].isupper() if name == "DagRunner" else key[0] != "_")} - BEYOND
    stubs = functions_of(class_of(name).body)
    assert {key for key in stubs if not key.startswith("_")} == public
    for method in public:
        check_same(stubs[method], own[method], exact=name != "DagRunner")
        assert name == "DagRunner" or ast.get_docstring(stubs[method]), method


def test_the_builder_is_made_with_what_the_workers_takes() -> None:
    check_same(functions_of(class_of("GearsBuilder").body)["__init__"], names_of_gears()["GB"])


@pytest.mark.parametrize(("method", "options"), [("run", RUN_OPTIONS), ("register", REGISTER_OPTIONS)])
def test_the_options_of_all_readers_are_in_the_stubs(method: str, options: dict[str, tuple[str, ...]]) -> None:
    known = {name for names in options.values() for name in names} | ({"privileged"} if method == "register" else set())
    stub = functions_of(class_of("GearsBuilder").body)[method]
    assert {one.arg for one in stub.args.kwonlyargs} == known - ({name for name, _ in positional(stub)} - {"prefix"})


def test_the_words_of_the_stubs_are_those_that_the_worker_takes() -> None:
    assert literal(TREE, "_Reader") == set(READERS)
    assert literal(TREE, "_Mode") == set(MODES)
    assert literal(TREE_OF_AI, "_Type") == {*DTYPES, "STRING"}


def test_mypy_takes_a_users_scripts_and_finds_their_mistakes(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.py"
    wrong.write_text(WRONG)
    stubs = (GEARS, REDIS_AI, ROOT / "src" / "shardqa" / "gears" / "__init__.pyi")
    options = ("--strict", "--no-error-summary", "--follow-imports=skip")  # what the stubs import takes mypy longer
    command = [sys.executable, "-m", "mypy", *options, *map(str, (*stubs, *SCRIPTS, wrong))]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=110, check=False)
    assert not [script.name for script in SCRIPTS if script.name in done.stdout], done.stdout
    assert all(f"wrong.py:{line}" in done.stdout for line in (4, 5, 6)), done.stdout
    assert "import-not-found" not in done.stdout
