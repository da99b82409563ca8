"""Requests that a page of another site made a browser send are refused; those of everybody else are not."""

import httpx
import pytest

from tests.api.conftest import NOBODY, Server, StartApi, problem

DOCUMENT = {"id": "a", "text": "The mill was built in 1742."}


@pytest.mark.parametrize(
    "host",
    ["evil.example", "evil.example:8080", "127.0.0.1.evil.example", "localhost.evil", "[fe80::1%evil.example]", ""],
)
@pytest.mark.parametrize("path", ["/v1/corpora", "/v1/documents/a", "/metrics"])
def test_a_name_that_is_not_this_servers_is_refused(alone: httpx.Client, host: str, path: str) -> None:
    problem(alone.get(path, headers={"Host": host}), 421, "wrong_host")


@pytest.mark.parametrize(
    "host", ["localhost", "LOCALHOST:1", "a.localhost:8080", "127.0.0.1", "[::1]:80", "10.1.2.3:9"]
)
def test_localhost_and_addresses_are_this_servers(alone: httpx.Client, host: str) -> None:
    assert alone.get("/v1/corpora", headers={"Host": host}).status_code == 503  # its cluster is not there


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/", "/?q=who", "/openapi.json"])
def test_what_holds_no_documents_may_be_named_as_one_likes(alone: httpx.Client, path: str) -> None:
    assert alone.get(path, headers={"Host": "shardqa-7f.pods.example"}).status_code in (200, 503)


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://localhost:1", "file://", "http://[", ""])
@pytest.mark.parametrize("method", ["POST", "DELETE"])
def test_a_page_of_another_site_may_not_write(alone: httpx.Client, origin: str, method: str) -> None:
    address = "/v1/documents" if method == "POST" else "/v1/documents/a"
    reply = alone.request(method, address, json=DOCUMENT, headers={"Origin": origin})
    problem(reply, 403, "wrong_origin")


def test_an_origin_beside_the_servers_own_is_refused(alone: httpx.Client, lonely: Server) -> None:
    origins = [("Origin", lonely.url), ("Origin", "http://evil.example")]
    problem(alone.post("/v1/documents", json=DOCUMENT, headers=origins), 403, "wrong_origin")


def test_the_servers_own_page_may_write(alone: httpx.Client, lonely: Server) -> None:
    reply = alone.post("/v1/documents", json=DOCUMENT, headers={"Origin": lonely.url})
    assert reply.status_code == 503


def test_names_that_are_given_are_this_servers(start_api: StartApi) -> None:
    server = start_api(redis=NOBODY, http_hosts="qa.example, Docs.example")
    with server.client() as client:
        for host in ("qa.example", "docs.example:8080"):
            headers = {"Host": host, "Origin": "https://docs.example"}
            assert client.post("/v1/documents", json=DOCUMENT, headers=headers).status_code == 503
        problem(client.get("/v1/corpora", headers={"Host": "other.example"}), 421, "wrong_host")
