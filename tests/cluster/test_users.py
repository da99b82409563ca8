"""The users that docs/operating.md describes, as it describes them: what each may do, and what it is refused."""

import json
import re
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr
from redis import RedisCluster, ResponseError

from shardqa import keys
from shardqa.cluster.local import LocalCluster
from shardqa.config import Settings
from shardqa.engine import Engine
from shardqa.engine.api_keys import NewKey
from shardqa.errors import ShardqaError, UnknownCorpus
from shardqa.schema import Document
from tests.cluster.shards_client import Shards
from tests.conftest import Output

DOCUMENTED = re.compile(r"^    ACL SETUSER (\w+) (on >secret .*)$", re.MULTILINE)
TEXT = "The mill of Brennick was built in 1820 by Ada Holm."
QUESTION = "When was the mill of Brennick built?"
Login = Callable[[str], Any]


def documented() -> dict[str, str]:
    return dict(DOCUMENTED.findall((Path(__file__).parents[2] / "docs" / "operating.md").read_text()))


@pytest.fixture
def users(shards: Shards, corpus: str) -> Iterator[None]:
    """Every documented user on every node, for this test's corpus in place of `cia`."""
    for name, rights in documented().items():
        words = rights.replace(":cia:", f":{corpus}:").split()
        for node in shards.nodes():
            shards.client.execute_command("ACL", "SETUSER", name, "reset", *words, target_nodes=node)
    yield
    for node in shards.nodes():
        shards.client.execute_command("ACL", "DELUSER", *documented(), target_nodes=node)


@pytest.fixture
def login(cluster: LocalCluster, users: None) -> Iterator[Login]:
    with ExitStack() as stack:
        host, _, port = cluster.seed().rpartition(":")
        yield lambda name: stack.enter_context(
            RedisCluster(host=host, port=int(port), username=name, password="secret", socket_timeout=120)
        )


@asynccontextmanager
async def engine_of(user: str, settings: Settings) -> AsyncIterator[Engine]:
    async with await Engine.connect(settings.model_copy(update={"user": user, "password": SecretStr("secret")})) as own:
        yield own


@pytest.fixture
async def asker(settings: Settings, users: None) -> AsyncIterator[Engine]:
    async with engine_of("asks", settings) as own:
        yield own


@pytest.fixture
async def ingester(settings: Settings, users: None) -> AsyncIterator[Engine]:
    async with engine_of("ingests", settings) as own:
        yield own


def everywhere(client: Any, *words: Any) -> list[Any]:
    """Gives what each master replies; an error as an exception object."""
    replies = []
    for node in client.get_primaries():
        try:
            replies.append(client.execute_command(*words, target_nodes=node))
        except ResponseError as error:
            replies.append(error)
    return replies


def refused(client: Any, *words: Any) -> bool:
    """Whether every master that it is sent to refuses it for want of a right."""
    return all(
        isinstance(reply, ResponseError) and "perm" in repr(reply).lower() for reply in everywhere(client, *words)
    )


def allowed(client: Any, *words: Any) -> bool:
    return not any(isinstance(reply, Exception) for reply in everywhere(client, *words))


def test_three_users_are_documented() -> None:
    assert sorted(documented()) == ["admin", "asks", "ingests"]


async def test_who_only_asks_gets_answers(engine: Engine, asker: Engine) -> None:
    await engine.documents.put(Document(id="mill", text=TEXT))
    answer = await asker.ask(QUESTION)
    assert (answer.answer, answer.partial) == ("1820", False)
    assert (await asker.ask(QUESTION)).cached


async def test_who_only_asks_sees_that_the_cluster_is_ready_and_its_own_corpora_alone(
    engine: Engine, asker: Engine, corpus: str
) -> None:
    assert await asker.cluster.problems() == []
    await engine.documents.put(Document(id="mill", text=TEXT))
    await engine.documents.put(Document(id="mill", text=TEXT, corpus=corpus + "-other"))
    assert [found.name for found in (await asker.catalogue.corpora()).corpora] == [corpus]


async def test_who_asks_one_corpus_can_not_ask_another(engine: Engine, asker: Engine, corpus: str) -> None:
    await engine.documents.put(Document(id="mill", text=TEXT, corpus=corpus + "-other"))
    with pytest.raises(ShardqaError, match="may not run 'GET answer:"):
        await asker.ask(QUESTION, corpus=corpus + "-other")
    with pytest.raises(UnknownCorpus):
        await asker.ask(QUESTION)


@pytest.mark.parametrize("command", [
    "RG.TRIGGER Delete {key}", "RG.TRIGGERONKEY Delete {key}", "RG.TRIGGER Ingest {key} text Other.",
    "RG.TRIGGERONKEY Ingest {key} text Other.", "RG.TRIGGER Documents {corpus} / 10", "RG.TRIGGER Drop {corpus}",
    "RG.TRIGGER Dense {corpus} on", "RG.TRIGGER Passages {corpus}-other who []", "RG.TRIGGER Embed {corpus}-other who",
    "RG.TRIGGER Languages {corpus} on",
    "RG.TRIGGER Rank {corpus}-other who 5", "RG.TRIGGER Terms {corpus}-other who",
    "RG.TRIGGER Changed {corpus}", "RG.TRIGGER Epochs {corpus}",
    "RG.TRIGGER Push bert {tag} model:mine:{{{tag}}}", "RG.PYEXECUTE 1", "RG.UNREGISTER x",
])  # fmt: skip
def test_who_only_asks_changes_nothing_and_sees_no_other_corpus(
    shards: Shards, login: Login, command: str, corpus: str
) -> None:
    shards.ingest("mill", TEXT)
    key = shards.doc("mill")
    words = command.format(key=key, corpus=corpus, tag=shards.tag_of("mill")[0]).split()
    assert refused(login("asks"), *("" if word == "/" else word for word in words))
    assert shards.redis(key).hget(key, "text") == TEXT.encode()


async def test_the_rights_that_keys_of_the_api_need_are_enough(
    shards: Shards, asker: Engine, key_rights: tuple[str, str, str]
) -> None:
    def also(rights: str) -> None:
        for node in shards.nodes():
            shards.client.execute_command("ACL", "SETUSER", "asks", *rights.split(), target_nodes=node)

    reading, counting, changing = key_rights
    with pytest.raises(ShardqaError):
        await asker.api_keys.all()
    also(reading)
    await asker.api_keys.all()
    with pytest.raises(ShardqaError):
        await asker.api_keys.count_requests(7, {"a": 2})
    also(counting)
    assert await asker.api_keys.count_requests(7, {"a": 2}) == {"a": (2, 0)}
    with pytest.raises(ShardqaError):
        await asker.api_keys.create(NewKey(name="n", scopes=["ask"]))
    also(changing)
    made, _ = await asker.api_keys.create(NewKey(name="n", scopes=["ask"]))
    await asker.api_keys.revoke(made.id)


@pytest.fixture
def key_rights(shards: Shards) -> Iterator[tuple[str, str, str]]:
    """The rights that docs/operating.md adds: to read keys, to count requests, to make and revoke keys."""
    page = " ".join((Path(__file__).parents[2] / "docs" / "operating.md").read_text().split())
    rights = re.search(
        r"add `(~apikeys\* [^`]*)`, with limits of requests `([^`]*)`; who runs .* needs `(~apikeys [^`]*)`",
        page,
    )
    assert rights is not None
    yield rights[1], rights[2], rights[3]
    key = f"{keys.REQUESTS}7"
    shards.redis(key).delete(key)


def test_statistics_of_ones_own_need_the_right_to_store_answers(shards: Shards, login: Login, corpus: str) -> None:
    shards.ingest("mill", TEXT)
    statistics = json.dumps(shards.statistics(QUESTION))
    asks, rank = login("asks"), ("RG.TRIGGER", "Rank", corpus, QUESTION, 5)
    assert allowed(asks, *rank, statistics)
    for node in shards.nodes():
        shards.client.execute_command("ACL", "SETUSER", "asks", "resetkeys", f"%R~answer:{corpus}:*", target_nodes=node)
    assert allowed(asks, *rank)
    assert refused(asks, *rank, statistics)


async def test_who_ingests_stores_reads_and_deletes(ingester: Engine, corpus: str) -> None:
    done = await ingester.documents.put(Document(id="mill", text=TEXT))
    assert done.passages == 1
    document = await ingester.documents.get(corpus, "mill")
    assert document is not None
    assert document.text == TEXT
    assert await ingester.documents.delete(corpus, "mill")


async def test_who_ingests_can_not_ask(engine: Engine, ingester: Engine, login: Login, corpus: str) -> None:
    await engine.documents.put(Document(id="mill", text=TEXT))
    with pytest.raises(ShardqaError):
        await ingester.ask(QUESTION)
    assert refused(login("ingests"), "RG.TRIGGER", "Terms", corpus, QUESTION)


async def test_who_ingests_into_one_corpus_changes_no_other(engine: Engine, ingester: Engine, corpus: str) -> None:
    other = corpus + "-other"
    await engine.documents.put(Document(id="mill", text=TEXT, corpus=other))
    with pytest.raises(ShardqaError):
        await ingester.documents.put(Document(id="mill", text="Other.", corpus=other))
    with pytest.raises(ShardqaError):
        await ingester.documents.delete(other, "mill")
    document = await engine.documents.get(other, "mill")
    assert document is not None
    assert document.text == TEXT


@pytest.fixture
def run(cluster: LocalCluster, users: None, corpus: str, program: Callable[..., Output]) -> Callable[..., Any]:
    """`run("asks", "status")`: what the program says to this user."""

    def run_(user: str, command: str, code: int = 0) -> Any:
        login = {"SHARDQA_REDIS": cluster.seed(), "SHARDQA_USER": user, "SHARDQA_PASSWORD": "secret"}
        return program(command, "--json", code=code, SHARDQA_CORPUS=corpus, **login).json

    return run_


def test_who_ingests_does_so_again_by_the_command_line(
    cluster: LocalCluster, users: None, corpus: str, program: Callable[..., Output], tmp_path: Path
) -> None:
    (tmp_path / "mill.txt").write_text(TEXT)
    (tmp_path / "barn.txt").write_text("The barn is red.")
    login = {"SHARDQA_REDIS": cluster.seed(), "SHARDQA_USER": "ingests", "SHARDQA_PASSWORD": "secret"}
    for written in (2, 0):
        done = program("ingest", str(tmp_path), "--corpus", corpus, "--json", **login).json
        assert done["documents"] == written
    (tmp_path / "barn.txt").unlink()
    assert program("ingest", str(tmp_path), "--corpus", corpus, "--prune", "--json", **login).json["removed"] == 1


def test_a_user_without_the_right_is_not_told_that_there_is_no_cluster(run: Callable[..., Any]) -> None:
    assert run("ingests", "ls", code=1)["code"] == "unknown_corpus"
    assert run("asks", "ls", code=1)["code"] == "user_refused"


@pytest.mark.parametrize("user", ["asks", "ingests", "admin"])
def test_every_documented_user_may_run_status(run: Callable[..., Any], user: str) -> None:
    assert [node["worker"] for node in run(user, "status")] == ["ready"] * 3


@pytest.mark.parametrize("user", ["asks", "admin"])
def test_the_doctor_finds_nothing_bad_as_a_user_who_may_ask(run: Callable[..., Any], user: str) -> None:
    findings = run(user, "doctor")
    assert [f["verdict"] for f in findings if f["check"].startswith("ACL")] == ["ok"] * 3
    assert {f["check"] for f in findings if f["verdict"] == "unknown"} <= {"AOF"}


@pytest.mark.parametrize("missing", ["shardqa.get", "rg.trigger"])
def test_the_doctor_tells_who_asks_what_right_is_missing(run: Callable[..., Any], shards: Shards, missing: str) -> None:
    for node in shards.nodes():
        shards.client.execute_command("ACL", "SETUSER", "asks", f"-{missing}", target_nodes=node)
    (finding,) = (f for f in run("asks", "doctor", code=1) if f["check"] == f"ACL {missing}")
    assert finding["verdict"] == "bad"
    assert f"+{missing}" in finding["remedy"]


def test_an_admin_runs_and_removes_code(login: Login) -> None:
    admin = login("admin")
    assert everywhere(admin, "RG.PYEXECUTE", "1")[0] in (b"OK", "OK")
    assert not refused(admin, "RG.DUMPREGISTRATIONS")
