"""The notebook of docs/ runs: its cells in their order, in one Python."""

import contextlib
import io
import json
from pathlib import Path
from typing import Any

from shardqa.cluster.local import LocalCluster
from tests.api.conftest import running_api

NOTEBOOK = Path(__file__).parents[2] / "docs" / "notebook.ipynb"


def test_the_notebook_runs(cluster: LocalCluster, tmp_path: Path) -> None:
    names: dict[str, Any] = {}
    output = io.StringIO()
    with running_api(tmp_path, redis=cluster.seed(), timeout=30) as api, contextlib.redirect_stdout(output):
        for cell in json.loads(NOTEBOOK.read_text())["cells"]:
            if cell["cell_type"] == "code":
                exec("".join(cell["source"]).replace("http://127.0.0.1:8080", api.url), names)
    assert "Who built the mill?  Ada Holm" in output.getvalue()
    assert "Oakline river" in output.getvalue()
