"""API keys: who may do what, over real HTTP."""

import json
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import httpx
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from shardqa.api.allowances import Allowances, RequestCount
from shardqa.api.connection import Connection
from shardqa.api.faults import TooManyOfKey
from shardqa.cluster.local import LocalCluster
from shardqa.engine.api_keys import ApiKey
from shardqa.filters import DocumentFilter
from tests.api.conftest import (
    KeyOf,
    Server,
    bearer,
    cluster_client,
    environment,
    problem,
    refused_start,
    running_api,
    store_key,
)
from tests.conftest import Output
from tests.nodes import free_port, wait_until

QUESTION = "Who built the mill?"


def ask(locked: Server, corpus: str | list[str], key: str | None, **more: Any) -> httpx.Response:
    with locked.client(headers=bearer(key)) as client:
        return client.post("/v1/ask", json={"question": QUESTION, "corpus": corpus, **more})


def awaited(ask: Callable[[], httpx.Response], is_there: Callable[[httpx.Response], bool]) -> httpx.Response:
    """The first reply of which that holds: a server reads the keys anew within seconds."""
    found: httpx.Response = wait_until(lambda: reply if is_there(reply := ask()) else None, "the keys are read anew")
    return found


def test_a_key_counts_though_this_machine_needs_none(api: Server, filled: str, cluster: LocalCluster) -> None:
    _, key = store_key(cluster, scopes=["ask"], corpora=["another"])
    reply = awaited(lambda: ask(api, filled, key), lambda reply: reply.status_code == 403)
    problem(reply, 403, "not_allowed")


def test_who_has_no_valid_key_stays_outside(locked: Server, filled: str, cluster: LocalCluster) -> None:
    problem(ask(locked, filled, None), 401, "key_wanted")
    assert ask(locked, filled, None).headers["www-authenticate"] == "Bearer"
    _, key = store_key(cluster, scopes=["ask"], expires=datetime.now(UTC) - timedelta(seconds=1))
    wrong = f"{key[:-1]}{'a' if key[-1] != 'a' else 'b'}"
    for other in ("sq-0", wrong, "x", f"sq-{'0' * 12}-{'a' * 43}"):
        problem(ask(locked, filled, other), 401, "key_refused")
    reply = awaited(lambda: ask(locked, filled, key), lambda reply: "expired" in reply.text)
    problem(reply, 401, "key_refused")
    with locked.client() as client:
        assert client.get("/healthz").status_code == client.get("/").status_code == 200


def test_a_question_that_names_no_corpus_is_for_the_keys_own(locked: Server, filled: str, key_of: KeyOf) -> None:
    with locked.client(headers=bearer(key_of(scopes=["ask"], corpora=[filled]))) as client:
        for path in ("/v1/ask", "/v1/search", "/v1/explain"):
            assert client.post(path, json={"question": QUESTION}).json()["corpus"] == filled, path


def test_a_key_is_good_for_its_corpora_only(locked: Server, filled: str, key_of: KeyOf) -> None:
    key = key_of(scopes=["ask"], corpora=[filled])
    assert ask(locked, filled, key).json()["answer"]
    problem(ask(locked, "seeds", key), 403, "not_allowed")
    assert ask(locked, filled, key).json()["cached"], "a kept answer asks the key, too"
    with locked.client(headers=bearer(key)) as client:
        assert [one["name"] for one in client.get("/v1/corpora").json()["corpora"]] == [filled]
        problem(client.delete(f"/v1/corpora/{filled}"), 403, "not_allowed")


def test_of_several_corpora_a_key_must_be_good_for_each_and_a_star_means_its_own(
    locked: Server, filled: str, root: httpx.Client, key_of: KeyOf
) -> None:
    other, secret = f"{filled}-b", f"{filled}-c"
    for name in (other, secret):
        sent = {"corpus": name, "text": "Cy Moen built the barn.", "metadata": {"year": 2000}}
        assert root.post("/v1/documents", json=sent).status_code == 201
    key = key_of(scopes=["ask"], corpora=[filled, other])
    for corpora in ([filled, secret], f"{filled},{secret}"):
        problem(ask(locked, corpora, key), 403, "not_allowed")
    for corpora in ([filled, other], "*"):
        reply = ask(locked, corpora, key).json()
        assert (reply["corpus"], reply["document_corpus"]) == (f"{filled},{other}", filled)
    assert reply["cached"]
    few = key_of(scopes=["ask"], corpora=[filled, other], filter=DocumentFilter(metadata={"year": {"lt": 1950}}))
    assert ask(locked, "*", few).json()["corpus"] == filled, "a corpus of which it sees no document is none"


def test_a_key_with_a_filter_sees_nothing_else(locked: Server, filled: str, key_of: KeyOf) -> None:
    key = key_of(scopes=["ask"], filter=DocumentFilter(metadata={"year": {"gte": 1900}}))
    assert ask(locked, filled, key).json()["answer"] == "Bob Holm"
    again = ask(locked, filled, key).json()
    assert (again["cached"], again["timing"]["cache"]) == (False, 0), "else it would tell of writes that are hidden"
    assert ask(locked, filled, key, filter={"metadata": {"year": 1871}}).json()["n_best"] == []
    with locked.client(headers=bearer(key)) as client:
        where = {"corpus": filled}
        assert [one["id"] for one in client.get("/v1/documents", params=where).json()["documents"]] == ["Bob"]
        assert client.get("/v1/documents/Ada", params=where).status_code == 404
        assert client.get("/v1/files/Ada", params=where).json()["code"] == "unknown_document"
        for path in ("/v1/search", "/v1/explain"):
            found = client.get(path, params={"q": QUESTION, **where}).json()["passages"]
            assert [one["document"] for one in found] == ["Bob"]


def test_a_key_has_a_number_of_requests_a_minute(locked: Server, filled: str, key_of: KeyOf) -> None:
    key = key_of(scopes=["ask"], per_minute=4)
    first = ask(locked, filled, key)
    assert (first.status_code, first.headers["ratelimit-policy"]) == (200, '"key";q=4;w=60')
    assert first.headers["ratelimit"] in ('"key";r=3', '"key";r=2')  # making the key may have asked once
    reply = awaited(lambda: ask(locked, filled, key), lambda reply: reply.status_code == 429)
    problem(reply, 429, "too_many_of_key")
    assert 1 <= int(reply.headers["retry-after"]) <= 120  # 1 where the minute ends
    assert reply.headers["ratelimit"] == '"key";r=0'


async def test_a_key_is_served_as_often_as_it_says_and_then_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    async def counted(minute: int, sent: dict[str, int]) -> dict[str, tuple[int, int]]:
        return {}

    monkeypatch.setattr("shardqa.api.allowances.time.time", lambda: 7 * 60.0)  # a minute never turns
    engine = SimpleNamespace(api_keys=SimpleNamespace(count_requests=counted))
    allowances = Allowances(cast(Connection, SimpleNamespace(engine=engine)))
    key = ApiKey(id="k", name="intranet", scopes=["ask"], per_minute=4, created=datetime.now(UTC), digest="")
    for _ in range(4):
        await allowances.take(key)
    with pytest.raises(TooManyOfKey, match="4 requests a minute"):
        await allowances.take(key)


@example(limit=15, before=18, current=0, second=0.0)
@given(limit=st.integers(1, 50), before=st.integers(0, 99), current=st.integers(0, 99), second=st.floats(0, 59.9))
def test_a_key_is_good_again_after_the_seconds_of_retry_after_and_no_earlier(
    limit: int, before: int, current: int, second: float
) -> None:
    def is_refused(now: float) -> bool:
        count = RequestCount(minute=7, sent=current, before=before)
        count.turn(int(now) // 60)
        return count.within(now) >= limit

    now = 7 * 60 + second
    assume(is_refused(now))
    wait = RequestCount(minute=7, sent=current, before=before).wait(limit, now)
    assert not is_refused(now + wait)
    assert wait == 1 or is_refused(now + wait - 1.001)


def requests_of(client: Any, id_: str) -> int:
    """Requests of a key that Redis knows of."""
    names = (f"apikeys:requests:{int(time.time()) // 60 - ago}" for ago in (0, 1))
    return sum(int(client.hget(name, id_) or 0) for name in names)


def test_processes_count_the_requests_of_a_key_together(cluster: LocalCluster, locked: Server, tmp_path: Path) -> None:
    id_, key = store_key(cluster, scopes=["ask"], per_minute=20)
    count = 0
    with (
        running_api(tmp_path, redis=cluster.seed(), http_keys="all") as server,
        locked.client(headers=bearer(key)) as first,
        server.client(headers=bearer(key)) as second,
    ):

        def is_refused() -> bool:
            nonlocal count
            reply = second.get("/v1/formats")
            count += reply.status_code == 200
            return reply.status_code == 429

        wait_until(lambda: first.get("/v1/formats").status_code == 200, "the key is known")
        for _ in range(19):
            first.get("/v1/formats")
        with cluster_client(cluster) as client:
            wait_until(lambda: requests_of(client, id_) >= 18, "the first says what it served")
        wait_until(is_refused, "the other process knows what the first served")
    assert count < 20, "one that counted alone would serve them all"


def test_keys_are_made_listed_and_revoked_on_the_command_line(
    cluster: LocalCluster, locked: Server, filled: str, program: Callable[..., Output]
) -> None:
    def keys(*words: str, code: int = 0) -> Output:
        return program("keys", *words, "--redis", cluster.seed(), code=code)

    key = keys("create", "intranet", "--scope", "ask", "--corpus", filled, "--expires", "90d", "--json").json
    listed = keys("ls", "--json").json
    mine = next(one for one in listed if one["id"] == key["id"])
    assert (mine["name"], mine["scopes"], mine["corpora"]) == ("intranet", ["ask"], [filled])
    assert key["key"].startswith(f"sq-{key['id']}-")
    assert key["key"].removeprefix(f"sq-{key['id']}-") not in json.dumps(listed)
    awaited(lambda: ask(locked, filled, key["key"]), lambda reply: reply.status_code == 200)
    keys("rm", key["id"])
    reply = awaited(lambda: ask(locked, filled, key["key"]), lambda reply: reply.status_code != 200)
    problem(reply, 401, "key_refused")
    gone = keys("rm", key["id"], "--json", code=1)
    assert gone.json == {"removed": {key["id"]: False}}
    assert "keys ls" in gone.stderr
    wrong = keys("create", "x", "--scope", "ask", "--scope", "admin", "--filter", '{"title": "a"}', code=2)
    assert "for asking only" in wrong.stderr


def test_a_public_bind_without_keys_does_not_start(cluster: LocalCluster) -> None:
    env = environment(redis=cluster.seed(), http_host="0.0.0.0", http_port=free_port())
    with cluster_client(cluster) as client:
        before = client.hgetall("apikeys")
        client.delete("apikeys")
        try:
            assert "shardqa keys create NAME --scope ask" in refused_start(env=env)
        finally:
            if before:
                client.hset("apikeys", mapping=before)


@pytest.mark.parametrize("sent", ["Bearer sq-nope", "Bearer", "Basic dTpw", "sq-nope"])
def test_what_is_no_key_is_refused_where_none_is_needed(http: httpx.Client, sent: str) -> None:
    problem(http.get("/v1/corpora", headers={"Authorization": sent}), 401, "key_refused")


def test_a_client_that_can_not_send_nothing_sends_none(http: httpx.Client) -> None:
    assert http.get("/v1/corpora", headers={"Authorization": "Bearer none"}).status_code == 200
