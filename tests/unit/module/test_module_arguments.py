"""The worker reads what HELLO says of the module's arguments."""

import ast
from pathlib import Path

from tests.module.arguments import module_arguments

WORKER = Path(__file__).parents[3] / "module" / "worker"


def test_the_worker_reads_every_argument_of_its_greeting() -> None:
    names = {argument.hello for argument in module_arguments() if argument.hello}
    nodes = [node for path in WORKER.rglob("*.py") for node in ast.walk(ast.parse(path.read_text()))]
    texts = {node.value.lower() for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    fields = {node.target.id for node in nodes if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)}
    assert len(names) == 8
    assert not names - texts - fields
