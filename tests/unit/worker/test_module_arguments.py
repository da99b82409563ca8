"""The worker has neither names nor bounds nor defaults of its own for the module's arguments."""

import ast
from pathlib import Path

from shardqa.worker.gears.settings import KNOWN
from tests.module.arguments import module_arguments

WORKER = Path(__file__).parents[3] / "worker"


def test_the_worker_reads_every_argument_of_its_greeting() -> None:
    names = {argument.hello for argument in module_arguments() if argument.hello}
    nodes = [node for path in WORKER.rglob("*.py") for node in ast.walk(ast.parse(path.read_text()))]
    texts = {node.value.lower() for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    fields = {node.target.id for node in nodes if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)}
    assert len(names) == 8
    assert not names - texts - fields


def test_settings_that_are_arguments_have_the_bounds_of_the_table() -> None:
    bounds = {argument.name: int(argument.least) for argument in module_arguments() if argument.name in KNOWN}
    assert bounds == {name: setting.least for name, setting in KNOWN.items() if setting.value is None}
