"""The stubs of shardqa.gears say what the worker gives to scripts: names, parameters, defaults, options of readers."""

import ast
import inspect
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

import shardqa.gears
from shardqa.worker.gears.pipeline.futures import GearsFuture
from shardqa.worker.gears.sessions import script_functions
from shardqa.worker.gears.sessions.builder import Builder
from shardqa.worker.gears.sessions.builder_options import MODES, READERS, REGISTER_OPTIONS, RUN_OPTIONS
from shardqa.worker.gears.sessions.script_module import HIDDEN
from shardqa.worker.gears.sessions.session import Session

ROOT = Path(__file__).parents[4]
STUB = ROOT / "worker" / "local" / "__init__.pyi"
SCRIPT = Path(__file__).with_name("sample_script.py")
TREE = ast.parse(STUB.read_text())
CLASSES = {"GearsBuilder": Builder, "gearsFuture": GearsFuture}
BEYOND = {"plan_of_run"}  # of the builder: for the local runner, not for scripts
UNSAID = object()  # a default that the stub only names as `...`


def runtime_names() -> dict[str, Any]:
    host = SimpleNamespace(cluster=SimpleNamespace(hashtag=lambda: ""), calls=None, runtime_of=lambda session: None)
    names = script_functions.namespace(cast(script_functions.ScriptHost, host), cast(Session, None))
    return {name: value for name, value in names.items() if name not in HIDDEN}


def functions_of(body: list[ast.stmt]) -> dict[str, ast.FunctionDef]:
    return {node.name: node for node in body if isinstance(node, ast.FunctionDef)}


def class_of(name: str) -> ast.ClassDef:
    return next(node for node in TREE.body if isinstance(node, ast.ClassDef) and node.name == name)


def positional(function: ast.FunctionDef) -> list[tuple[str, object]]:
    """(name, default) of what has a place; no default: the parameter's own mark."""
    arguments = [one.arg for one in function.args.args if one.arg != "self"]
    values = [UNSAID if is_ellipsis(one) else ast.literal_eval(one) for one in function.args.defaults]
    required: list[object] = [inspect.Parameter.empty] * (len(arguments) - len(values))
    return list(zip(arguments, required + values, strict=True))


def is_ellipsis(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is ...


def named_only(function: ast.FunctionDef) -> set[str]:
    return {one.arg for one in function.args.kwonlyargs}


def of_runtime(value: Any) -> Iterator[tuple[str, object]]:
    for one in inspect.signature(value).parameters.values():
        if one.name != "self" and one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD):
            yield one.name, UNSAID if callable(one.default) and one.default is not one.empty else one.default


def takes_any_number(value: Any) -> bool:
    return any(one.kind is one.VAR_POSITIONAL for one in inspect.signature(value).parameters.values())


def literal(name: str) -> set[str]:
    """The words of a Literal that the stub names."""
    found = next(node for node in TREE.body if isinstance(node, ast.AnnAssign) and ast.unparse(node.target) == name)
    return {str(node.value) for node in ast.walk(cast(ast.expr, found.value)) if isinstance(node, ast.Constant)}


def test_the_stubs_have_the_names_that_a_script_finds() -> None:
    exported = next(node.value for node in TREE.body if isinstance(node, ast.Assign) and "__all__" in ast.unparse(node))
    assert set(ast.literal_eval(exported)) == set(runtime_names()) == set(shardqa.gears.__all__)


@pytest.mark.parametrize("name", sorted(set(functions_of(TREE.body))))
def test_a_function_of_the_stubs_takes_what_the_workers_takes(name: str) -> None:
    stub, own = functions_of(TREE.body)[name], runtime_names()[name]
    assert positional(stub) == list(of_runtime(own))
    assert bool(stub.args.vararg) == takes_any_number(own)
    assert ast.get_docstring(stub)


@pytest.mark.parametrize("name", CLASSES)
def test_a_class_of_the_stubs_has_the_methods_of_the_workers(name: str) -> None:
    own = {key: value for key, value in vars(CLASSES[name]).items() if inspect.isfunction(value)}
    public = {key for key in own if not key.startswith("_")} - BEYOND
    stubs = functions_of(class_of(name).body)
    assert {key for key in stubs if not key.startswith("_")} == public
    for method in public:
        assert positional(stubs[method]) == list(of_runtime(own[method])), method
        assert ast.get_docstring(stubs[method]), method


def test_the_builder_is_made_with_what_the_workers_takes() -> None:
    own = runtime_names()["GB"]
    assert positional(functions_of(class_of("GearsBuilder").body)["__init__"]) == list(of_runtime(own))


@pytest.mark.parametrize(("method", "options"), [("run", RUN_OPTIONS), ("register", REGISTER_OPTIONS)])
def test_the_options_of_all_readers_are_in_the_stubs(method: str, options: dict[str, tuple[str, ...]]) -> None:
    known = {name for names in options.values() for name in names} | ({"privileged"} if method == "register" else set())
    places = {name for name, _ in of_runtime(getattr(Builder, method))}
    assert named_only(functions_of(class_of("GearsBuilder").body)[method]) == known - (places - {"prefix"})


def test_the_words_of_the_stubs_are_those_that_the_worker_takes() -> None:
    assert literal("_Reader") == set(READERS)
    assert literal("_Mode") == set(MODES)


def test_mypy_takes_a_users_script_and_finds_its_mistakes(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.py"
    wrong.write_text("from shardqa.gears import GB, log\nGB('KeyReader').mapp(log).register(trigger=1)\n")
    alone = ("--follow-imports=skip", str(STUB))  # what the stubs import takes mypy longer than all else here
    command = [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", *alone, str(SCRIPT), str(wrong)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=110, check=False)
    assert SCRIPT.name not in done.stdout
    assert "wrong.py:2" in done.stdout
    assert 'has no attribute "mapp"' in done.stdout
