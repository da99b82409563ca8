"""API keys: who may do what, over real HTTP."""

import asyncio
import json
import os
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx

from shardqa.cluster.local import LocalCluster
from shardqa.engine import Engine
from shardqa.filters import DocumentFilter
from tests.api.browser import running_browser
from tests.api.conftest import Server, bearer, cluster_client, made_key, running_api
from tests.nodes import free_port, wait_until

QUESTION = "Who built the mill?"


def ask(locked: Server, corpus: str, key: str | None, **more: Any) -> httpx.Response:
    with locked.client(headers=bearer(key) if key else {}) as client:
        return client.post("/v1/ask", json={"question": QUESTION, "corpus": corpus, **more})


async def test_who_has_no_valid_key_stays_outside(locked: Server, filled: str, engine: Engine) -> None:
    assert code(ask(locked, filled, None)) == (401, "key_wanted")
    assert ask(locked, filled, None).headers["www-authenticate"] == "Bearer"
    _, key = await made_key(engine, scopes=["ask"], expires=datetime.now(UTC) - timedelta(seconds=1))
    wrong = f"{key[:-1]}{'a' if key[-1] != 'a' else 'b'}"
    for other in ("sq-0", wrong, "x", f"sq-{'0' * 12}-{'a' * 43}"):
        assert code(ask(locked, filled, other)) == (401, "key_refused")
    reply = waited(locked, filled, key, lambda reply: "expired" in reply.text)
    assert code(reply) == (401, "key_refused")
    with locked.client() as client:
        assert client.get("/healthz").status_code == client.get("/").status_code == 200
        assert code(client.get("/metrics")) == (401, "key_wanted")


def code(reply: httpx.Response) -> tuple[int, str]:
    return reply.status_code, reply.json()["code"]


def waited(locked: Server, corpus: str, key: str, is_there: Any) -> httpx.Response:
    """The reply once the server has read the keys anew."""
    found: httpx.Response = wait_until(
        lambda: reply if is_there(reply := ask(locked, corpus, key)) else None, "the keys are read anew"
    )
    return found


async def test_a_key_is_good_for_its_scopes_and_corpora_only(locked: Server, filled: str, engine: Engine) -> None:
    _, key = await made_key(engine, scopes=["ask"], corpora=[filled])
    assert waited(locked, filled, key, lambda reply: reply.status_code == 200).json()["answer"]
    assert code(ask(locked, "seeds", key)) == (403, "not_allowed")
    assert ask(locked, filled, key).json()["cached"], "a kept answer asks the key, too"
    with locked.client(headers=bearer(key)) as client:
        assert [one["name"] for one in client.get("/v1/corpora").json()["corpora"]] == [filled]
        put = client.post("/v1/documents", json={"id": "x", "corpus": filled, "text": "A weir."})
        assert code(put) == (403, "not_allowed")
        assert code(client.delete(f"/v1/documents/Ada?corpus={filled}")) == (403, "not_allowed")
        assert code(client.delete(f"/v1/corpora/{filled}")) == (403, "not_allowed")
        assert code(client.get("/metrics")) == (403, "not_allowed")
        assert client.get("/v1/documents", params={"corpus": filled}).status_code == 200


async def test_a_key_with_a_filter_sees_nothing_else(locked: Server, filled: str, engine: Engine) -> None:
    chosen = DocumentFilter(metadata={"year": {"gte": 1900}})
    _, key = await made_key(engine, scopes=["ask"], filter=chosen)
    reply = waited(locked, filled, key, lambda reply: reply.status_code == 200)
    assert reply.json()["answer"] == "Bob Holm"
    assert ask(locked, filled, key).json()["cached"]
    assert ask(locked, filled, key, filter={"metadata": {"year": 1871}}).json()["n_best"] == []
    with locked.client(headers=bearer(key)) as client:
        where = {"corpus": filled}
        assert [one["id"] for one in client.get("/v1/documents", params=where).json()["documents"]] == ["Bob"]
        assert client.get("/v1/documents/Ada", params=where).status_code == 404
        found = client.get("/v1/search", params={"q": QUESTION, **where}).json()["passages"]
        assert [one["document"] for one in found] == ["Bob"]
        why = client.get("/v1/explain", params={"q": QUESTION, **where}).json()
        assert [one["document"] for one in why["passages"]] == ["Bob"]


async def test_the_page_asks_for_the_key_and_uses_it(locked: Server, filled: str, engine: Engine) -> None:
    _, key = await made_key(engine, scopes=["ask"], corpora=[filled])
    waited(locked, filled, key, lambda reply: reply.status_code == 200)

    def visit() -> str:
        with running_browser() as browser:
            page = browser.new_page(base_url=locked.url)
            page.goto(f"/?corpus={filled}")
            page.get_by_label("Your key").fill(key)
            page.get_by_role("button", name="Use it").click()
            page.locator(".corpora li").first.wait_for()
            return page.locator(".corpora li h3").first.inner_text()

    assert await asyncio.to_thread(visit) == filled


def test_the_answer_for_browsers_without_javascript_wants_a_key_too(locked: Server, filled: str) -> None:
    with locked.client() as client:
        assert code(client.get("/", params={"q": "Who?", "corpus": filled, "plain": "1"})) == (401, "key_wanted")
        assert client.get("/", params={"q": "Who?", "corpus": filled}).status_code == 200


async def test_a_revoked_key_is_refused_within_seconds(locked: Server, filled: str, engine: Engine) -> None:
    id_, key = await made_key(engine, scopes=["ask"])
    waited(locked, filled, key, lambda reply: reply.status_code == 200)
    await engine.revoke_key(id_)
    reply = waited(locked, filled, key, lambda reply: reply.status_code != 200)
    assert code(reply) == (401, "key_refused")


async def test_a_key_has_a_number_of_requests_a_minute(locked: Server, filled: str, engine: Engine) -> None:
    _, key = await made_key(engine, scopes=["ask"], per_minute=3)
    waited(locked, filled, key, lambda reply: reply.status_code == 200)
    reply = waited(locked, filled, key, lambda reply: reply.status_code == 429)
    assert (reply.json()["code"], reply.headers["retry-after"]) == ("too_many_of_key", "1")


def told(client: Any, id_: str) -> int:
    """Requests of a key that Redis knows of."""
    names = (f"apikeys:requests:{int(time.time()) // 60 - ago}" for ago in (0, 1))
    return sum(int(client.hget(name, id_) or 0) for name in names)


async def test_processes_count_the_requests_of_a_key_together(
    cluster: LocalCluster, locked: Server, engine: Engine, tmp_path: Path
) -> None:
    id_, key = await made_key(engine, scopes=["ask"], per_minute=20)
    served = 0
    with (
        running_api(tmp_path, redis=cluster.seed(), http_keys="all") as second,
        locked.client(headers=bearer(key)) as one,
        second.client(headers=bearer(key)) as other,
    ):

        def is_refused() -> bool:
            nonlocal served
            reply = other.get("/v1/formats")
            served += reply.status_code == 200
            return reply.status_code == 429

        wait_until(lambda: one.get("/v1/formats").status_code == 200, "the key is known")
        for _ in range(19):
            one.get("/v1/formats")
        with cluster_client(cluster) as client:
            wait_until(lambda: told(client, id_) >= 18, "the first says what it served")
        wait_until(is_refused, "the other process knows what the first served")
    assert served < 20, "one that counted alone would serve them all"


def program(cluster: LocalCluster, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "shardqa", *words, "--redis", cluster.seed()]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def test_keys_are_made_listed_and_revoked_on_the_command_line(cluster: LocalCluster, tmp_path: Path) -> None:
    made = program(
        cluster, "keys", "create", "intranet", "--scope", "ask", "--corpus", "c", "--expires", "90d", "--json"
    )
    key = json.loads(made.stdout)
    listed = json.loads(program(cluster, "keys", "ls", "--json").stdout)
    mine = next(one for one in listed if one["id"] == key["id"])
    assert (mine["name"], mine["scopes"], mine["corpora"]) == ("intranet", ["ask"], ["c"])
    assert key["key"].startswith(f"sq-{key['id']}-")
    assert key["key"].rpartition("-")[2] not in json.dumps(listed)
    assert program(cluster, "keys", "revoke", key["id"]).returncode == 0
    gone = program(cluster, "keys", "revoke", key["id"], "--json")
    assert (gone.returncode, json.loads(gone.stdout)) == (1, {"revoked": {key["id"]: False}})
    assert "keys ls" in gone.stderr
    wrong = program(cluster, "keys", "create", "x", "--scope", "ask", "--scope", "admin", "--filter", '{"title": "a"}')
    assert "for asking only" in wrong.stderr


def test_a_public_bind_without_keys_does_not_start(cluster: LocalCluster, tmp_path: Path) -> None:
    env = {name: value for name, value in os.environ.items() if not name.startswith("SHARDQA_")}
    env |= {
        "SHARDQA_REDIS": cluster.seed(),
        "SHARDQA_HTTP_HOST": "0.0.0.0",
        "SHARDQA_HTTP_PORT": str(free_port()),
    }
    with cluster_client(cluster) as client:
        before = client.hgetall("apikeys")
        client.delete("apikeys")
        try:
            command = [sys.executable, "-m", "shardqa.api"]
            ended = subprocess.run(command, env=env, capture_output=True, text=True, timeout=60, check=False)
        finally:
            if before:
                client.hset("apikeys", mapping=before)
    assert ended.returncode == 1
    assert "shardqa keys create NAME --scope ask" in ended.stderr
