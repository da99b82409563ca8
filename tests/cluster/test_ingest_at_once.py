"""Two ingests of the same files at once, and one that is killed half-way: both leave what one alone would."""

import os
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from shardqa.cluster.local import LocalCluster
from tests.cluster.shards_client import Shards, story
from tests.nodes import wait_until

PAGES, ROWS = 60, 1_500


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Pages, which travel one by one, a table, whose rows travel together, and a text of many passages."""
    folder = tmp_path_factory.mktemp("files")
    for n in range(PAGES):
        (folder / f"page-{n}.md").write_text(f"# Page {n}\n\n{story(900, n)}\n")
    rows = (f"Ferry {n},{n % 40},{n * 7} crowns\n" for n in range(ROWS))
    (folder / "ferries.csv").write_text("Ferry,Berth,Fare\n" + "".join(rows))
    (folder / "annals.txt").write_text(story(200_000))
    return folder


def ingesting(cluster: LocalCluster, corpus: str, files: Path) -> "subprocess.Popen[bytes]":
    own = {"SHARDQA_REDIS": cluster.seed(), "SHARDQA_CORPUS": corpus}
    words = [sys.executable, "-m", "shardqa", "ingest", str(files)]
    return subprocess.Popen(words, env={**os.environ, **own}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def stored(shards: Shards, corpus: str) -> dict[str, Any]:
    """Each document and passage of a corpus by its key without the corpus' name."""
    found = {}
    for kind in ("doc", "passage"):
        for key in shards.client.scan_iter(match=f"{kind}:{corpus}:*", count=5_000, target_nodes="primaries"):
            found[key.decode().replace(f":{corpus}:", ":")] = shards.client.hgetall(key)
    return found


def keys_of(shards: Shards) -> int:
    """Counts the keys of all shards in a moment: by the time that `stored` has looked, an ingest may be done."""
    return sum(shards.client.dbsize(target_nodes=node) for node in shards.client.get_primaries())


@pytest.fixture(scope="module")
def alone(cluster: LocalCluster, files: Path) -> dict[str, Any]:
    """What one ingest leaves."""
    with closing(Shards(cluster, "alone")) as shards:
        assert ingesting(cluster, "alone", files).wait(300) == 0
        whole = stored(shards, "alone")
    assert len(whole) > PAGES + ROWS
    return whole


def test_two_at_once_leave_what_one_alone_would(
    cluster: LocalCluster, shards: Shards, files: Path, alone: dict[str, Any]
) -> None:
    both = [ingesting(cluster, shards.corpus, files) for _ in range(2)]
    assert [one.wait(300) for one in both] == [0, 0]
    assert stored(shards, shards.corpus) == alone


def test_one_that_was_killed_half_way_is_made_whole_by_the_next(
    cluster: LocalCluster, shards: Shards, files: Path, alone: dict[str, Any]
) -> None:
    before = keys_of(shards)
    killed = ingesting(cluster, shards.corpus, files)
    wait_until(lambda: keys_of(shards) > before + PAGES or killed.poll() is not None, "it is on its way", 120)
    killed.kill()
    assert killed.wait(30) != 0, "it was done before it was killed"
    assert 0 < len(stored(shards, shards.corpus)) < len(alone)
    assert ingesting(cluster, shards.corpus, files).wait(300) == 0
    assert stored(shards, shards.corpus) == alone
