"""The users that docs/operating.md describes, as it describes them: what each may do, and what it is refused."""

import json
import os
import re
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr
from redis import RedisCluster, ResponseError

from shardqa import keys
from shardqa.api_keys import NewKey
from shardqa.cluster.local import LocalCluster
from shardqa.config import Settings
from shardqa.engine import Engine
from shardqa.errors import ShardqaError, UnknownCorpus
from shardqa.schema import Document
from tests.cluster.shards_client import Shards

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
    opened: list[Any] = []

    def login(name: str) -> Any:
        host, _, port = cluster.seed().rpartition(":")
        client = RedisCluster(host=host, port=int(port), username=name, password="secret", socket_timeout=30)
        opened.append(client)
        return client

    yield login
    for client in opened:
        client.close()


@pytest.fixture
async def asker(settings: Settings, users: None) -> AsyncIterator[Engine]:
    engine = await Engine.connect(settings.model_copy(update={"user": "asks", "password": SecretStr("secret")}))
    yield engine
    await engine.close()


@pytest.fixture
async def ingester(settings: Settings, users: None) -> AsyncIterator[Engine]:
    engine = await Engine.connect(settings.model_copy(update={"user": "ingests", "password": SecretStr("secret")}))
    yield engine
    await engine.close()


def everywhere(client: Any, *words: Any) -> list[Any]:
    """What each master says; an error as an exception object."""
    replies = []
    for node in client.get_primaries():
        try:
            replies.append(client.execute_command(*words, target_nodes=node))
        except ResponseError as error:
            replies.append(error)
    return replies


def refused(client: Any, *words: Any) -> bool:
    """By every master that it is sent to."""
    return all(
        isinstance(reply, ResponseError) and "perm" in repr(reply).lower() for reply in everywhere(client, *words)
    )


def test_three_users_are_documented() -> None:
    assert sorted(documented()) == ["admin", "asks", "ingests"]


async def test_who_only_asks_gets_answers(engine: Engine, asker: Engine) -> None:
    await engine.documents.put(Document(id="mill", text=TEXT))
    answer = await asker.ask(QUESTION)
    assert (answer.answer, answer.partial) == ("1820", False)
    assert (await asker.ask(QUESTION)).cached


async def test_who_only_asks_sees_that_the_cluster_is_ready(asker: Engine) -> None:
    assert await asker.cluster.problems() == []


async def test_who_only_asks_sees_its_own_corpora_alone(engine: Engine, asker: Engine, corpus: str) -> None:
    await engine.documents.put(Document(id="mill", text=TEXT))
    await engine.documents.put(Document(id="mill", text=TEXT, corpus=corpus + "-other"))
    assert [found.name for found in (await asker.catalogue.corpora()).corpora] == [corpus]


async def test_who_asks_one_corpus_can_not_ask_another(engine: Engine, asker: Engine, corpus: str) -> None:
    await engine.documents.put(Document(id="mill", text=TEXT, corpus=corpus + "-other"))
    with pytest.raises(ShardqaError, match="may not run 'GET answer:"):
        await asker.ask(QUESTION, corpus=corpus + "-other")
    with pytest.raises(UnknownCorpus):
        await asker.ask(QUESTION)


@pytest.mark.parametrize("trigger", ["Delete", "Ingest"])
def test_who_only_asks_changes_no_document_by_a_trigger(
    shards: Shards, login: Login, trigger: str, corpus: str
) -> None:
    shards.ingest("mill", TEXT)
    key = shards.doc("mill")
    asks = login("asks")
    assert refused(asks, "RG.TRIGGER", trigger, key, *(["text", "Other."] if trigger == "Ingest" else []))
    assert refused(asks, "RG.TRIGGERONKEY", trigger, key, "text", "Other.")
    assert shards.redis(key).hget(key, "text") == TEXT.encode()


def test_who_only_asks_lists_and_drops_no_documents(shards: Shards, login: Login, corpus: str) -> None:
    shards.ingest("mill", TEXT)
    asks = login("asks")
    assert refused(asks, "RG.TRIGGER", "Documents", corpus, "", 10)
    assert refused(asks, "RG.TRIGGER", "Drop", corpus)
    assert refused(asks, "RG.TRIGGER", "Dense", corpus, "on")
    assert refused(asks, "RG.TRIGGER", "Passages", corpus + "-other", QUESTION, "[]")
    assert refused(asks, "RG.TRIGGER", "Embed", corpus + "-other", QUESTION)
    assert shards.redis(shards.doc("mill")).exists(shards.doc("mill"))


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
    """As docs/operating.md adds them: to read keys, to count requests, to make and revoke keys."""
    page = " ".join((Path(__file__).parents[2] / "docs" / "operating.md").read_text().split())
    found = re.search(r"add `(~apikeys\* [^`]*)`, with limits of requests `([^`]*)` too, and `(~apikeys [^`]*)`", page)
    assert found is not None
    yield found[1], found[2], found[3]
    key = f"{keys.REQUESTS}7"
    shards.redis(key).delete(key)


def test_who_only_asks_has_no_model_pushed(shards: Shards, login: Login) -> None:
    tag = shards.all("RG.TRIGGER", "Corpora")[0]["tag"]
    assert refused(login("asks"), "RG.TRIGGER", "Push", "bert", tag, keys.model("mine", tag))


def test_who_only_asks_runs_and_removes_no_code(login: Login) -> None:
    asks = login("asks")
    assert refused(asks, "RG.PYEXECUTE", "1")
    assert refused(asks, "RG.UNREGISTER", "x")


def test_ranking_of_another_corpus_is_refused(shards: Shards, login: Login, corpus: str) -> None:
    asks = login("asks")
    assert refused(asks, "RG.TRIGGER", "Rank", corpus + "-other", QUESTION, 5)
    assert refused(asks, "RG.TRIGGER", "Terms", corpus + "-other", QUESTION)


def test_statistics_of_ones_own_need_the_right_to_store_answers(shards: Shards, login: Login, corpus: str) -> None:
    shards.ingest("mill", TEXT)
    statistics = json.dumps(shards.statistics(QUESTION))
    asks = login("asks")
    assert not any(
        isinstance(r, Exception) for r in everywhere(asks, "RG.TRIGGER", "Rank", corpus, QUESTION, 5, statistics)
    )
    for node in shards.nodes():
        shards.client.execute_command("ACL", "SETUSER", "asks", "resetkeys", f"%R~answer:{corpus}:*", target_nodes=node)
    assert not any(isinstance(r, Exception) for r in everywhere(asks, "RG.TRIGGER", "Rank", corpus, QUESTION, 5))
    assert refused(asks, "RG.TRIGGER", "Rank", corpus, QUESTION, 5, statistics)


async def test_who_ingests_stores_reads_and_deletes(ingester: Engine, corpus: str) -> None:
    done = await ingester.documents.put(Document(id="mill", text=TEXT))
    assert done.passages == 1
    found = await ingester.documents.get(corpus, "mill")
    assert found is not None
    assert found.text == TEXT
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
    found = await engine.documents.get(other, "mill")
    assert found is not None
    assert found.text == TEXT


def shardqa(cluster: LocalCluster, corpus: str, user: str, *words: str) -> "subprocess.CompletedProcess[str]":
    """The program as this user."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("SHARDQA_")}
    given = {"SHARDQA_REDIS": cluster.seed(), "SHARDQA_USER": user, "SHARDQA_PASSWORD": "secret"}
    command = [sys.executable, "-m", "shardqa.cli", *words, "--json"]
    env = {**clean, **given, "SHARDQA_CORPUS": corpus}
    return subprocess.run(command, capture_output=True, text=True, env=env, timeout=110, check=False)


@pytest.mark.parametrize("user", ["asks", "ingests", "admin"])
def test_every_documented_user_may_run_status(cluster: LocalCluster, users: None, corpus: str, user: str) -> None:
    done = shardqa(cluster, corpus, user, "status")
    assert done.returncode == 0, done.stderr
    assert [node["worker"] for node in json.loads(done.stdout)] == ["ready"] * 3


@pytest.mark.parametrize("user", ["asks", "admin"])
def test_the_doctor_finds_nothing_bad_as_a_user_who_may_ask(
    cluster: LocalCluster, users: None, corpus: str, user: str
) -> None:
    done = shardqa(cluster, corpus, user, "doctor")
    assert done.returncode == 0, done.stdout + done.stderr
    findings = json.loads(done.stdout)
    assert [f["verdict"] for f in findings if f["check"].startswith("ACL")] == ["ok"] * 3
    assert {f["check"] for f in findings if f["verdict"] == "unknown"} <= {"AOF"}


@pytest.mark.parametrize("missing", ["shardqa.get", "rg.trigger"])
def test_the_doctor_tells_who_asks_what_right_is_missing(
    cluster: LocalCluster, shards: Shards, users: None, corpus: str, missing: str
) -> None:
    for node in shards.nodes():
        shards.client.execute_command("ACL", "SETUSER", "asks", f"-{missing}", target_nodes=node)
    done = shardqa(cluster, corpus, "asks", "doctor")
    assert done.returncode == 1, done.stderr
    (finding,) = (f for f in json.loads(done.stdout) if f["check"] == f"ACL {missing}")
    assert finding["verdict"] == "bad"
    assert f"+{missing}" in finding["remedy"]


def test_an_admin_runs_and_removes_code(login: Login) -> None:
    admin = login("admin")
    assert everywhere(admin, "RG.PYEXECUTE", "1")[0] in (b"OK", "OK")
    assert not refused(admin, "RG.DUMPREGISTRATIONS")
