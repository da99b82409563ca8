"""HTTP by schemathesis, in short; `make torture-http MINUTES=10` goes on for longer, on a cluster of its own."""

from pathlib import Path

import pytest

from tests.api.conftest import Server
from tests.api.schemathesis_run import run


@pytest.mark.timeout(330)  # 50 s of a machine with ten times its load
def test_every_reply_is_one_that_the_description_has(api: Server, tmp_path: Path) -> None:
    done = run(api.url, None, seed=1, folder=tmp_path)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    assert "No issues found" in done.stdout or "passed" in done.stdout
