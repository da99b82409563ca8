"""Pages of other sites, in a real browser: those of named origins may use the API, all others may not."""

import gzip
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import httpx
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from shardqa.cluster.local import LocalCluster
from shardqa.config import Settings
from tests.api.browser import Watched
from tests.api.conftest import Server, problem, running_api, running_app
from tests.unit.house import ROOT

if TYPE_CHECKING:
    from playwright.sync_api import Browser

SCRIPT = """
async ([url, corpus]) => {
  const { Client } = await import(`${url}/static/shardqa.js`);
  const client = new Client({ url, retries: 0 });
  await client.add({ id: "mill", corpus, text: "Ada Holm built the mill in 1871." });
  const answer = await client.ask("Who built the mill?", { corpus });
  const fault = await client.ask("Who?", { corpus: "nowhere" }).catch((problem) => problem.code);
  const reply = await fetch(`${url}/v1/corpora`, { headers: { Authorization: "Bearer none" } });
  await client.delete("mill", { corpus });
  return [answer.answer, fault, reply.headers.get("x-request-id").length];
}
"""
WRITES = """
async ([url, corpus]) => {
  const body = JSON.stringify({ id: "mill", corpus, text: "Ada Holm built the mill in 1871." });
  const headers = { "Content-Type": "application/json" };
  return await fetch(`${url}/v1/documents`, { method: "POST", body, headers }).catch((error) => error.name);
}
"""


@pytest.fixture(scope="module")
def elsewhere() -> Iterator[Server]:
    """A site with one page, and one that has the search box of an API."""

    async def page(request: Request) -> Response:
        return HTMLResponse("<!doctype html><title>another site</title>")

    async def box(request: Request) -> Response:
        api, corpus = request.query_params["api"], request.query_params["corpus"]
        html = (ROOT / "docs" / "examples" / "search-box.html").read_text()
        html = html.replace("http://localhost:8080", api).replace('corpus="seeds"', f'corpus="{corpus}"')
        policy = f"default-src 'none'; script-src {api}; connect-src {api}; style-src 'self'"
        return HTMLResponse(html, headers={"Content-Security-Policy": policy})

    with running_app(Starlette(routes=[Route("/", page), Route("/box", box)])) as server:
        yield server


@pytest.fixture(scope="module")
def open_api(cluster: LocalCluster, elsewhere: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """An API for the page that is elsewhere."""
    origins = f"https://app.example, {elsewhere.url}/"
    with running_api(tmp_path_factory.mktemp("open"), redis=cluster.seed(), timeout=30, http_origins=origins) as server:
        yield server


def run(browser: "Browser", site: Server, script: str, *arguments: str) -> Any:
    watched = Watched(browser, site.url)
    watched.page.goto("/")
    found = watched.page.evaluate(script, list(arguments))
    watched.context.close()
    return found


def test_a_page_of_a_named_origin_may_use_the_api(
    browser: "Browser", elsewhere: Server, open_api: Server, corpus: str
) -> None:
    assert run(browser, elsewhere, SCRIPT, open_api.url, corpus) == ["Ada Holm", "unknown_corpus", 36]


def test_a_search_box_of_another_site_answers_and_leads_to_documents(
    browser: "Browser", elsewhere: Server, open_api: Server, corpus: str
) -> None:
    """The example's page, where the site allows no style but its own files."""
    mill = "The <b>mill</b> 🌾 is old. Ada Holm built the mill in 1871."
    with open_api.client() as client:
        client.post("/v1/documents", json={"id": "mill/1", "corpus": corpus, "title": "<i>Mill</i>", "text": mill})
    address = f"/box?{urlencode({'api': open_api.url, 'corpus': corpus})}"
    watch = Watched(browser, elsewhere.url)
    page = watch.page
    page.goto(address)
    page.get_by_label("Ask the handbook").fill("Who built the mill?")
    page.get_by_role("button", name="Ask").click()
    page.locator("[part=answer]", has_text="Ada Holm").wait_for()
    assert page.locator("mark").all_inner_texts() == ["Ada Holm"]
    assert page.locator("[part=quote]").inner_text() == mill
    found = page.get_by_role("link", name="<i>Mill</i>").get_attribute("href")
    start = mill.index("Ada")
    assert found == f"{open_api.url}/document?corpus={corpus}&id=mill%2F1&start={start}&end={start + 8}"
    assert page.locator("form").evaluate("form => getComputedStyle(form).display") == "flex"
    page.locator("shardqa-search").evaluate("box => { box.setAttribute('link', '/at/{document}#{start}') }")
    page.get_by_label("Ask the handbook").fill("What is the capital of Mongolia?")
    page.get_by_label("Ask the handbook").press("Enter")
    page.get_by_text("The documents don’t mention capital or Mongolia.").wait_for()
    page.locator("shardqa-search").evaluate("box => box.ask('When was the mill built?')")
    page.locator("[part=answer]", has_text="1871").wait_for()
    assert page.get_by_role("link").get_attribute("href") == f"/at/mill%2F1#{mill.index('1871')}"
    watch.context.close()
    assert [error for error in watch.errors if "style" not in error] == []


def test_the_search_box_is_small() -> None:
    assert len((ROOT / "api" / "page" / "search-box.js").read_bytes()) <= 8 * 1024


def test_a_page_of_another_origin_may_neither_read_nor_write(
    browser: "Browser", elsewhere: Server, api: Server, corpus: str
) -> None:
    assert run(browser, elsewhere, WRITES, api.url, corpus) == "TypeError"
    with api.client() as client:
        assert client.get("/v1/documents/mill", params={"corpus": corpus}).status_code == 404


@pytest.mark.parametrize(
    ("origin", "method", "headers"),
    [
        ("https://evil.example", "POST", "content-type"),
        ("https://app.example", "TRACE", "content-type"),
        ("https://app.example", "POST", "x-other"),
    ],
)
def test_a_preflight_that_is_refused_is_a_problem(open_api: Server, origin: str, method: str, headers: str) -> None:
    asked = {"Access-Control-Request-Method": method, "Access-Control-Request-Headers": headers}
    with open_api.client() as client:
        problem(client.options("/v1/ask", headers={"Origin": origin, **asked}), 403, "wrong_origin")
        reply = client.get("/v1/corpora", headers={"Origin": "https://evil.example"})
    assert "access-control-allow-origin" not in reply.headers


@pytest.mark.parametrize("origin", ["*", "app.example", "https://app.example/page", "null"])
def test_what_is_no_origin_is_refused_by_name(origin: str) -> None:
    with pytest.raises(ValueError, match=r"is no origin; write it as https://app\.example"):
        Settings(http_origins=f"https://good.example,{origin}")


def test_a_large_reply_is_compressed_for_those_who_take_it(alone: httpx.Client) -> None:
    plain, packed = (alone.get("/openapi.json", headers={"Accept-Encoding": coding}) for coding in ("identity", "gzip"))
    assert "content-encoding" not in plain.headers
    assert packed.headers["content-encoding"] == "gzip"
    assert int(packed.headers["content-length"]) < len(plain.content) / 4
    assert packed.content == plain.content
    assert "content-encoding" not in alone.get("/healthz", headers={"Accept-Encoding": "gzip"}).headers


@pytest.mark.parametrize("path", ["/v1/ask", "/v1/documents"])
def test_a_compressed_body_is_refused_by_name(alone: httpx.Client, path: str) -> None:
    headers = {"Content-Type": "application/json", "Content-Encoding": "gzip"}
    body = gzip.compress(b'{"question": "Who?"}')
    assert "'gzip'" in problem(alone.post(path, content=body, headers=headers), 415, "encoded_body")["detail"]
