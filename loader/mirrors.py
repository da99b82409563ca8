"""Git repositories and S3 buckets as folders: a mirror in the user's cache, which is then read as any folder is.

What has not changed there keeps its file and its time, so it is skipped as in a folder; what has gone goes from the
mirror, and from the corpus with --prune.
"""

import os
import re
import subprocess
from hashlib import blake2b
from pathlib import Path
from typing import Any

from shardqa.errors import BadDocument
from shardqa.extras import need

GIT, S3 = "git+", "s3://"  # how the words for each begin
GIT_SECONDS = 600.0
BUCKET = re.compile(r"s3://([a-z0-9][a-z0-9.-]{1,61}[a-z0-9])(?:/(.*))?", re.DOTALL)


def is_remote(word: str) -> bool:
    return word.startswith((GIT, S3))


def mirrored(word: str) -> Path:
    """Brings the mirror of a repository or bucket up to date. Raises BadDocument, SetupError."""
    root = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "shardqa" / "mirrors"
    folder = root / blake2b(word.encode(), digest_size=16).hexdigest()
    folder.mkdir(parents=True, exist_ok=True)
    if word.startswith(GIT):
        _pull(word.removeprefix(GIT), folder)
    else:
        _copy(word, folder)
    return folder


def _pull(address: str, folder: Path) -> None:
    """The newest commit of `ADDRESS[@BRANCH]`, without its history. Git touches the files alone that it changes."""
    if address.startswith("-"):
        raise BadDocument(f"{address!r} is no address of a repository; write git+https://host/path.git")
    head, at, branch = address.rpartition("@")
    if not at or "/" not in head or re.search(r"[:/]", branch):  # the @ of ssh://git@host and of git@host:path
        head, branch = address, "HEAD"
    if not (folder / ".git").is_dir():
        _git(folder, "init", "--quiet")
    _git(folder, "fetch", "--quiet", "--depth", "1", "--no-tags", "--", head, branch)
    _git(folder, "reset", "--quiet", "--hard", "FETCH_HEAD")
    _git(folder, "clean", "--quiet", "-ffdx")


def _git(folder: Path, *words: str) -> None:
    environment = {**os.environ, "GIT_TERMINAL_PROMPT": "0"}
    command = ["git", "-C", str(folder), "-c", "core.hooksPath=/dev/null", *words]
    try:
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=GIT_SECONDS, check=False
        )
    except FileNotFoundError:
        raise BadDocument("there is no program git, which git+… needs; install it") from None
    except subprocess.TimeoutExpired:
        raise BadDocument(f"git {words[0]} took more than {GIT_SECONDS:g} s; try again") from None
    if done.returncode != 0:
        reason = done.stderr.strip().splitlines()[-1:] or ["it said nothing"]
        raise BadDocument(f"git {words[0]} failed: {reason[0]}; check the address and the branch")


def _copy(word: str, folder: Path) -> None:
    """The objects of `s3://BUCKET[/PREFIX]`, by the credentials and endpoint that boto3 finds itself."""
    need("boto3", package=".[s3]")
    import boto3
    from botocore.exceptions import BotoCoreError, ClientError

    if (parts := BUCKET.fullmatch(word)) is None:
        raise BadDocument(f"{word!r} is no bucket; write s3://BUCKET or s3://BUCKET/PREFIX")
    try:
        mirror_bucket(boto3.client("s3"), parts[1], parts[2] or "", folder)
    except (BotoCoreError, ClientError) as fault:
        raise BadDocument(f"{word} can't be read: {fault}; check its name and the credentials") from None


def mirror_bucket(client: Any, bucket: str, prefix: str, folder: Path) -> None:
    """Fetches the objects whose size or time is another than their file's, and removes the files of those gone."""
    files = set[Path]()
    for page in client.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix):
        for entry in page.get("Contents", ()):
            key: str = entry["Key"]
            rest = key.rpartition("/")[2] if key == prefix else key.removeprefix(prefix).lstrip("/")
            parts = rest.split("/")
            if any(part in ("", ".", "..") or "\0" in part for part in parts):
                continue  # a folder's own entry, or a key that is no path
            file, changed = folder.joinpath(*parts), int(entry["LastModified"].timestamp())
            files.add(file)
            if file.is_file() and (file.stat().st_size, int(file.stat().st_mtime)) == (entry["Size"], changed):
                continue
            file.parent.mkdir(parents=True, exist_ok=True)
            client.download_file(bucket, key, str(file))
            os.utime(file, (changed, changed))
    for path in [path for path in folder.rglob("*") if path.is_file() and path not in files]:
        path.unlink()
