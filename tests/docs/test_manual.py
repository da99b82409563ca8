"""The manual page is written from the commands themselves."""

import runpy
from pathlib import Path

FOLDER = Path(__file__).parents[2] / "docs" / "man"


def test_the_manual_is_what_its_script_writes() -> None:
    written = runpy.run_path(str(FOLDER / "manual.py"))["page"]()
    assert written == (FOLDER / "shardqa.1").read_text(), "run python docs/man/manual.py"
