"""`shardqa backup` and `restore`: three shards into one, one into three, the same answers."""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import pytest
from redis import RedisCluster
from typer.testing import CliRunner

from shardqa import cli, keys
from shardqa.cluster.local import LocalCluster
from shardqa.engine import Engine
from shardqa.engine.api_keys import ApiKey, NewKey
from shardqa.errors import ShardqaError
from shardqa.loader.backup.dump import dump
from shardqa.places import Place
from shardqa.schema import Answer, Document
from tests.compat.scripts import echo
from tests.nodes import settings_of

T = TypeVar("T")
CORPUS = "kept"
QUESTIONS = ("When was the mill of Brennick built?", "How deep is the lake?", "Who wrote the harbour's rules?")
DOCUMENTS = [
    Document(
        id="mill.pdf",
        text="The mill of Brennick was built in 1820 by Ada Holm. It ground rye.",
        title="Mill",
        source="/files/mill.pdf",
        metadata={"year": 1820, "of": ["rye", None]},
        places=[(0, Place(page=3, headings=["History"]))],
        origin="/files/mill.pdf",
    ),
    Document(id="lake", text="The lake is 287 metres deep. It never freezes."),
    Document(id="rules", text="The harbour's rules were written by Tove Ekman. They hold at night, too."),
    *(Document(id=f"filler-{n}", text=f"The weir number {n} roars at night and sleeps by day.") for n in range(40)),
]
HELD = {
    "document": len(DOCUMENTS) + 1,
    "function": 1,
    "key": 1,
    "api-key": 1,
    "setting": 2,
    "words": 1,
}


@pytest.fixture(scope="module")
def three(start_cluster: Callable[..., LocalCluster]) -> LocalCluster:
    cluster = start_cluster(shards=3)
    fill(cluster)
    return cluster


@pytest.fixture(scope="module")
def single(start_cluster: Callable[..., LocalCluster]) -> LocalCluster:
    return start_cluster(shards=1)


@pytest.fixture(scope="module")
def dumped(three: LocalCluster, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("backup") / "monday.shardqa"
    told = json.loads(run(three, "backup", str(path), "--json").stdout)
    assert (told["records"], told["left_out"]) == (HELD | {"about": 1}, [])
    return path


@dataclass
class Done:
    stdout: str
    stderr: str


def run(cluster: LocalCluster, *words: str, code: int = 0) -> Done:
    """The program in this process."""
    done = CliRunner().invoke(cli.app, [*words], env={"SHARDQA_REDIS": cluster.seed()})
    fault = str(done.exception) if isinstance(done.exception, ShardqaError) else ""
    assert done.exit_code == code, f"{done.exception!r} {done.output}"
    return Done(done.stdout, done.stderr + fault)


def on_engine(cluster: LocalCluster, work: Callable[[Engine], Awaitable[T]]) -> T:
    async def connected() -> T:
        engine = await Engine.connect(settings_of(cluster, corpus=CORPUS, timeout=60))
        try:
            return await work(engine)
        finally:
            await engine.close()

    return asyncio.run(connected())


def client(cluster: LocalCluster) -> Any:
    host, _, port = cluster.seed().rpartition(":")
    return RedisCluster(host=host, port=int(port), socket_timeout=120)


def fill(cluster: LocalCluster) -> None:
    async def put(engine: Engine) -> None:
        for document in DOCUMENTS:
            await engine.documents.put(document)

        await engine.api_keys.create(NewKey(name="reporter", scopes=["ask"]))
        await engine.catalogue.switch(CORPUS, "bridges", False)
        await engine.catalogue.switch("numbers", "dense", False)
        await engine.shards.by_key(keys.corpus_words("numbers"), "SET", '{"synonyms": ["a, b"]}')

    on_engine(cluster, put)
    with client(cluster) as redis:
        key = keys.doc(CORPUS, "by-hand")
        redis.hset(key, mapping={"text": b"not UTF-8: \xff", "mine": "1"})
        redis.pexpireat(key, 4_000_000_000_000)
        redis.execute_command("AI.TENSORSET", "weights", "FLOAT", 2, "VALUES", 1, 2)
        redis.set("somebody-elses", "1")
        registered = ("RG.PYEXECUTE", echo("kept"), "ID", "kept", "DESCRIPTION", "an echo")
        redis.execute_command(*registered, target_nodes=redis.get_primaries()[0])


def answers(cluster: LocalCluster) -> list[Any]:
    async def ask(engine: Engine) -> list[Answer]:
        return [await engine.ask(question, fresh=True) for question in QUESTIONS]

    wanted = {"answer", "score", "document", "start", "end", "place", "candidates", "partial"}
    return [answer.model_dump(include=wanted) for answer in on_engine(cluster, ask)]


def documents(cluster: LocalCluster) -> dict[bytes, Any]:
    """All that was written of each document; passages are a matter of the splitter."""
    with client(cluster) as redis:
        found = {key: redis.hgetall(key) for key in redis.scan_iter(match="doc:*")}
    return {key: {name: value for name, value in fields.items() if name != b"digest"} for key, fields in found.items()}


def kept_beside(cluster: LocalCluster) -> tuple[list[ApiKey], list[bytes], Any]:
    """API keys, settings and words of corpora."""
    with client(cluster) as redis:
        marks = sorted([*redis.scan_iter(match="dense:*"), *redis.scan_iter(match="bridges:*")])
        return (
            on_engine(cluster, lambda engine: engine.api_keys.all()),
            marks,
            redis.mget_nonatomic(keys.corpus_words("numbers")),
        )


def check_same(of: LocalCluster, restored: LocalCluster) -> None:
    assert documents(restored) == documents(of)
    assert kept_beside(restored) == kept_beside(of)
    assert all(kept_beside(of))
    assert answers(restored) == answers(of)
    with client(restored) as redis:
        assert redis.pexpiretime(keys.doc(CORPUS, "by-hand")) == 4_000_000_000_000
        assert redis.execute_command("AI.TENSORGET", "weights", "VALUES") == [1.0, 2.0]
        assert redis.get("somebody-elses") is None
        for node in redis.get_primaries():
            assert redis.execute_command("RG.TRIGGER", "kept", target_nodes=node) == [b"yes"]


def empty(cluster: LocalCluster) -> None:
    with client(cluster) as redis:
        redis.flushall(target_nodes="primaries")
        redis.set(keys.NO_ENCODER, "by these tests")


def test_three_shards_go_into_one_and_back_with_the_same_answers(
    three: LocalCluster, single: LocalCluster, dumped: Path, tmp_path: Path
) -> None:
    told = json.loads(run(single, "restore", str(dumped), "--json").stdout)
    assert (told["records"], told["left_out"]) == (HELD, [])
    with client(three) as redis:
        redis.delete("somebody-elses")
    check_same(three, single)
    before = answers(three)
    again = tmp_path / "tuesday"
    run(single, "backup", str(again))
    empty(three)
    run(three, "restore", str(again))
    check_same(single, three)
    assert answers(three) == before


def test_a_cluster_that_is_not_empty_is_left_alone_unless_told(single: LocalCluster, dumped: Path) -> None:
    with client(single) as redis:
        redis.set("somebody-elses", "1")
    refused = run(single, "restore", str(dumped), code=1).stderr
    assert "the cluster is not empty" in refused
    assert "--merge" in refused
    run(single, "restore", str(dumped), "--merge")
    with client(single) as redis:
        assert redis.get("somebody-elses") == b"1"
        redis.delete("somebody-elses")


def test_kinds_may_be_left_out(single: LocalCluster, dumped: Path) -> None:
    empty(single)
    left_out = [word for kind in ("api-key", "setting", "words") for word in ("--without", kind)]
    run(single, "restore", str(dumped), *left_out)
    assert kept_beside(single) == ([], [], [None])
    run(single, "restore", str(dumped), "--merge")


def test_a_damaged_file_changes_nothing(single: LocalCluster, dumped: Path, tmp_path: Path) -> None:
    whole = dumped.read_bytes()
    before = documents(single)
    for at in (0, 40, len(whole) // 2, len(whole) - 1):
        damaged = tmp_path / f"damaged-{at}"
        damaged.write_bytes(whole[:at] + bytes([whole[at] ^ 0xFF]) + whole[at + 1 :])
        assert "backup" in run(single, "restore", str(damaged), "--merge", code=1).stderr
    assert documents(single) == before


def test_the_file_is_checked_without_a_cluster(dumped: Path) -> None:
    told = json.loads(
        subprocess.check_output([sys.executable, "-m", "shardqa.cli", "restore", dumped, "--check", "--json"])
    )
    assert told["records"]["document"] == len(DOCUMENTS) + 1
    assert told["about"]["shards"] == 3


def test_functions_keep_to_the_user_who_registered_them(single: LocalCluster, dumped: Path) -> None:
    with client(single) as redis:
        redis.execute_command("ACL", "SETUSER", "other", "on", ">word", "~*", "&*", "+@all", target_nodes="primaries")
    words = ("restore", str(dumped), "--merge", "--user", "other", "--password", "word")
    assert "function kept: it has the rights of default, and this is other" in run(single, *words, code=4).stderr
    run(single, *words, "--adopt")
    with client(single) as redis:
        asked = ("RG.PYDUMPSESSIONS", "CODE", "SESSIONS", "kept")
        (session,) = redis.execute_command(*asked, target_nodes=redis.get_primaries()[0])
        assert session[session.index(b"user") + 1] == b"other"
        assert session[session.index(b"code") + 1] == echo("kept").encode()
    run(single, "restore", str(dumped), "--merge", "--adopt")


def test_a_reader_of_ones_own_goes_to_every_shard(three: LocalCluster, single: LocalCluster, tmp_path: Path) -> None:
    async def stored(engine: Engine) -> list[Any]:
        return [
            await engine.shards.on(node, "AI.MODELGET", pair[0], "META", "BLOB")
            for node in engine.shards.nodes()
            for pair in await engine.shards.on(node, "AI._MODELSCAN")
            if b"model:mine:" in pair[0]
        ]

    with client(single) as redis:
        (shipped,) = list(redis.scan_iter(match="model:*"))
        tag = shipped.decode().partition("{")[2].rstrip("}")
        blob = redis.execute_command("AI.MODELGET", shipped, "BLOB")
        content = b"".join(blob) if isinstance(blob, list) else blob
        store = ("ONNX", "CPU", "TAG", "mine@1", "BATCHSIZE", 4, "BLOB", content)
        redis.execute_command("AI.MODELSTORE", keys.model("mine", tag), *store)
    run(single, "backup", str(tmp_path / "b"))
    run(three, "restore", str(tmp_path / "b"), "--merge")
    (original,) = on_engine(single, stored)
    assert on_engine(three, stored) == [original] * 3


def test_a_backup_that_is_interrupted_leaves_no_file(single: LocalCluster, tmp_path: Path) -> None:
    async def interrupted(engine: Engine) -> list[str]:
        scanning, on = asyncio.Event(), engine.shards.on

        async def hanging(node: Any, *command: Any, seconds: float | None = None) -> Any:
            if command[0] == "SCAN":
                scanning.set()
                await asyncio.Event().wait()
            return await on(node, *command, seconds=seconds)

        engine.shards.on = hanging  # type: ignore[method-assign]
        task = asyncio.create_task(dump(engine, tmp_path / "b"))
        await scanning.wait()
        there = os.listdir(tmp_path)
        task.cancel()  # as asyncio.run does for Ctrl-C
        with pytest.raises(asyncio.CancelledError):
            await task
        return there

    (part,) = on_engine(single, interrupted)
    assert part.endswith(".part")
    assert list(tmp_path.iterdir()) == []
