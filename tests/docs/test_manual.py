"""The manual page is written from the commands themselves."""

import runpy
from pathlib import Path

from tests.docs.test_named import verbs

SCRIPT = Path(__file__).parents[2] / "docs" / "man" / "manual.py"


def test_the_manual_has_every_command() -> None:
    page = runpy.run_path(str(SCRIPT))["page"]().replace("\\-", "-")
    assert not [verb for verb in verbs() if f".SS {verb.removeprefix('shardqa ')}" not in page]
