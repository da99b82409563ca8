"""`shardqa ingest` without a cluster: how it ends."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import typer

from shardqa.cli import ingest
from shardqa.cli.output import PARTLY
from shardqa.errors import ClusterUnavailable
from shardqa.loader.summary import Summary
from shardqa.loader.sync import SyncOptions


async def test_a_ctrl_c_that_a_pass_swallows_ends_the_watch_all_the_same(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    passes = 0

    async def swallowing(*_: object) -> None:
        nonlocal passes
        passes += 1
        if passes == 2:
            watching.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asyncio.sleep(60)

    async def changes(*_: object) -> AsyncIterator[set[Any]]:
        while True:
            yield set()

    monkeypatch.setattr(ingest, "_one_pass", swallowing)
    monkeypatch.setattr("watchfiles.awatch", changes)
    engine: Any = None
    watching = asyncio.create_task(ingest._passes(engine, SyncOptions(corpus="c", paths=[tmp_path]), True, False))
    with pytest.raises(asyncio.CancelledError):
        await watching
    assert passes == 2


async def test_a_ctrl_c_says_what_was_taken(capsys: pytest.CaptureFixture[str]) -> None:
    def stopped() -> None:
        with ingest._told_when_stopped(lambda summary: None) as note:
            note(Summary(documents=1, unchanged=2))
            raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        stopped()
    assert "stopped: 1 document written, 2 unchanged;" in capsys.readouterr().err


async def test_a_node_that_is_gone_ends_a_pass_with_what_was_taken(capsys: pytest.CaptureFixture[str]) -> None:
    def failing() -> None:
        with ingest._told_when_stopped(lambda summary: None) as note:
            note(Summary(documents=1, unchanged=2))
            raise ClusterUnavailable("shard 127.0.0.1:7001 is silent")

    with pytest.raises(typer.Exit) as ended:
        failing()
    assert ended.value.exit_code == PARTLY
    said = capsys.readouterr().err
    assert ("stopped: 1 document written, 2 unchanged;" in said, "is silent" in said) == (True, True)
