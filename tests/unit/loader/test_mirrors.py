"""Repositories and buckets as folders: what has not changed keeps its file, what has gone goes."""

import shutil
import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from shardqa.errors import BadDocument
from shardqa.loader.mirrors import is_remote, mirror_bucket, mirrored

THEN = datetime(2026, 1, 2, tzinfo=UTC)


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    folder = tmp_path / "repository"
    folder.mkdir()
    git(folder, "init", "--quiet", "--initial-branch", "main")
    return folder


def git(folder: Path, *words: str) -> None:
    who = ["-c", "user.name=Ada", "-c", "user.email=ada@mill.org"]
    subprocess.run(["git", *who, *words], cwd=folder, check=True, capture_output=True)


def commit(folder: Path, **texts: str) -> None:
    for name, text in texts.items():
        (folder / f"{name}.md").write_text(text)
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "-m", "x")


@pytest.mark.skipif(shutil.which("git") is None, reason="there is no git")
def test_a_repository_is_brought_up_to_date(repository: Path) -> None:
    commit(repository, mill="The mill.", weir="The weir.")
    folder = mirrored(f"git+file://{repository}@main")
    times = (folder / "mill.md").stat().st_mtime_ns
    (repository / "weir.md").unlink()
    commit(repository, inn="The inn.")
    assert mirrored(f"git+file://{repository}@main") == folder
    assert sorted(path.name for path in folder.glob("*.md")) == ["inn.md", "mill.md"]
    assert (folder / "mill.md").stat().st_mtime_ns == times, "it has not changed"


@pytest.mark.skipif(shutil.which("git") is None, reason="there is no git")
def test_a_repository_that_is_not_there_is_named_with_a_way_out(repository: Path) -> None:
    with pytest.raises(BadDocument, match=r"git fetch failed: .*; check the address"):
        mirrored(f"git+file://{repository}-none")
    with pytest.raises(BadDocument, match="is no address"):
        mirrored("git+--upload-pack=x")


class Bucket:
    """As much of boto3's client as is called."""

    def __init__(self, **objects: str) -> None:
        self.objects = objects
        self.fetched = list[str]()

    def get_paginator(self, name: str) -> "Bucket":
        assert name == "list_objects_v2"
        return self

    def paginate(self, Bucket: str, Prefix: str) -> Iterator[dict[str, Any]]:
        assert Bucket == "docs"
        for key, text in self.objects.items():
            if key.startswith(Prefix):
                yield {"Contents": [{"Key": key, "Size": len(text), "LastModified": THEN}]}

    def download_file(self, bucket: str, key: str, path: str) -> None:
        self.fetched.append(key)
        Path(path).write_text(self.objects[key])


def test_a_bucket_is_fetched_where_it_changed(tmp_path: Path) -> None:
    bucket = Bucket(**{"a/mill.txt": "The mill.", "a/b/weir.txt": "The weir.", "a/../../x": "out", "a/b/": ""})
    mirror_bucket(bucket, "docs", "a/", tmp_path)
    assert bucket.fetched == ["a/mill.txt", "a/b/weir.txt"], "what leads out of the folder is left"
    bucket.objects = {"a/mill.txt": "The old mill."}
    mirror_bucket(bucket, "docs", "a/", tmp_path)
    mirror_bucket(bucket, "docs", "a/", tmp_path)
    assert bucket.fetched[2:] == ["a/mill.txt"]
    assert [path.name for path in tmp_path.rglob("*.txt")] == ["mill.txt"]


def test_only_repositories_and_buckets_are_remote() -> None:
    assert [is_remote(word) for word in ("git+https://h/x.git", "s3://b/p", "https://h/", "docs")] == [
        True,
        True,
        False,
        False,
    ]
