"""Lines of JSON that say how far an ingest is."""

import json

import pytest

from shardqa.cli.progress import ProgressLines, progress_record
from shardqa.loader.summary import Summary


def test_a_line_has_rate_rest_and_failures() -> None:
    line = progress_record(
        Summary(documents=4, unchanged=1, skipped=2, stored=250, bytes_written=2_000_000, seconds=60), 1_000
    )
    assert line == {
        "documents": 5,
        "failures": 2,
        "bytes": 250,
        "total": 1_000,
        "mb_per_minute": 2.0,
        "seconds": 60,
        "eta_seconds": 180.0,
    }


def test_nobody_knows_the_rest_before_anything_is_stored() -> None:
    assert progress_record(Summary(seconds=3), 1_000)["eta_seconds"] is None
    assert progress_record(Summary(seconds=3), 0)["eta_seconds"] == 0
    assert progress_record(Summary(seconds=3, stored=5), None)["eta_seconds"] is None


def test_lines_come_now_and_then(capsys: pytest.CaptureFixture[str]) -> None:
    often, seldom = ProgressLines(seconds=0), ProgressLines(seconds=600)
    for stored in (1, 5):
        often.write({"bytes": stored})
        seldom.write({"bytes": stored})
    assert [json.loads(line)["bytes"] for line in capsys.readouterr().err.splitlines()] == [1, 5]
