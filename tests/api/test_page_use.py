"""Uses of the page beside asking: copying, judging, going through a document, corpora, the cluster, themes."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from shardqa.models import squad
from tests.api.conftest import KeyOf, OpenPage, Server
from tests.nodes import wait_until

if TYPE_CHECKING:
    from playwright.sync_api import Page

QUESTION = "Who founded the mill?"
MILL = """# Two mills

## The first mill

The mill of Otani stands by the river. Ada Holm founded the mill in 1871 with money she had won at cards.
The miller's cat is called Wilma.

## The second mill

Ruth Holm founded a second mill in 1902. It was a paper mill.
"""


@pytest.fixture
def filled(http: httpx.Client, corpus: str) -> str:
    """This test's corpus, with a file about two mills."""
    reply = http.put("/v1/files/mill.md", params={"corpus": corpus}, content=MILL)
    assert reply.status_code == 201, reply.text
    return corpus


def stored(http: httpx.Client, corpus: str) -> str:
    """The file's text, as it can be asked."""
    return str(http.get("/v1/documents/mill.md", params={"corpus": corpus}).json()["text"])


@pytest.fixture
def answered(page: "Page", filled: str) -> "Page":
    page.goto(f"/?corpus={filled}&q={QUESTION}")
    page.locator(".answer-text", has_text="Ada Holm").wait_for()
    return page


def clipboard(page: "Page") -> str:
    return str(page.evaluate("navigator.clipboard.readText()"))


def test_an_answer_is_copied_and_cited_with_its_place(answered: "Page") -> None:
    answered.get_by_role("button", name="Copy", exact=True).first.click()
    wait_until(lambda: clipboard(answered) == "Ada Holm")
    answered.get_by_role("button", name="Cite", exact=True).click()
    wait_until(lambda: "§" in clipboard(answered))
    assert clipboard(answered).startswith("“Ada Holm” (Two mills, § The first mill, characters ")


def test_the_curl_line_asks_the_same(answered: "Page", api: Server, http: httpx.Client, filled: str) -> None:
    answered.get_by_text("Ask from …").click()
    curl = answered.locator(".forms pre").first.inner_text()
    assert f"{api.url}/v1/ask" in curl
    body = json.loads(curl[curl.index("-d '") + 4 : -1])
    assert http.post("/v1/ask", json=body).json()["answer"] == "Ada Holm"
    assert "redis-cli -c" in answered.locator(".forms").inner_text()
    assert f"answer:{filled}:" in answered.locator(".forms").inner_text()


def test_judged_answers_become_a_file_that_eval_reads(answered: "Page", filled: str, tmp_path: Path) -> None:
    answered.get_by_role("button", name="Right", exact=True).click()
    answered.get_by_label("Your question").fill("Who built the bridge?")
    answered.get_by_role("button", name="Ask", exact=True).click()
    answered.get_by_role("article", name="No answer").wait_for()
    answered.get_by_role("button", name="Wrong", exact=True).click()
    answered.get_by_label("What is right?").fill("a mason")
    answered.get_by_role("button", name="Keep", exact=True).click()
    with answered.expect_download() as download:
        answered.get_by_role("button", name="Save 2 as questions.jsonl").click()
    download.value.save_as(tmp_path / "questions.jsonl")
    kept = squad.read(tmp_path / "questions.jsonl").questions
    assert [(one.text, one.answers) for one in kept] == [
        (QUESTION, ("Ada Holm",)),
        ("Who built the bridge?", ("a mason",)),
    ]


def test_recent_questions_can_be_asked_again_and_forgotten(answered: "Page", filled: str) -> None:
    answered.goto(f"/?corpus={filled}")
    answered.locator("#recent").get_by_role("button", name=QUESTION).click()
    answered.locator(".answer-text", has_text="Ada Holm").wait_for()
    answered.goto(f"/?corpus={filled}")
    answered.get_by_role("button", name="Forget these").click()
    assert answered.locator("#recent").is_hidden()


def test_why_shows_words_ranks_graph_and_logits(answered: "Page") -> None:
    answered.get_by_text("Why?").click()
    answered.locator(".why svg.graph").wait_for()
    assert "found" in answered.get_by_role("region", name="The question’s words").inner_text()
    assert "founded" in answered.locator(".ranks mark").all_inner_texts()
    assert answered.locator("svg.graph .of-kind-question").count() == 1
    assert answered.locator("svg.graph .of-kind-shard").count() >= 1
    assert answered.locator(".picture").evaluate("box => box.scrollWidth <= box.clientWidth"), "nothing is cut off"
    assert "Ada Holm" in answered.get_by_role("region", name="What the reader saw").inner_text()


def test_titles_complete_what_is_typed(page: "Page", filled: str) -> None:
    page.goto(f"/?corpus={filled}")
    page.locator("#suggestions option").first.wait_for(state="attached")
    suggested = page.locator("#suggestions option").evaluate_all("all => all.map((one) => one.value)")
    assert suggested == ["Two mills", "The first mill", "The second mill"]


def test_the_document_shows_all_candidates_and_its_outline(answered: "Page", http: httpx.Client, filled: str) -> None:
    answered.get_by_role("link", name="Two mills").first.click()
    answered.locator(".walk").get_by_text("1 of").wait_for()
    text = stored(http, filled)
    assert answered.locator(".text").evaluate("(one) => one.textContent") == text
    assert answered.locator(".ticks i").count() == answered.locator(".text mark").count() > 1
    answered.get_by_role("button", name="Next passage").click()
    answered.locator(".walk").get_by_text("2 of").wait_for()
    answered.keyboard.press("p")
    answered.locator(".walk").get_by_text("1 of").wait_for()
    answered.get_by_text("Outline, 2 entries").click()
    answered.get_by_role("button", name="The second mill").click()
    answered.locator(".text .anchor").wait_for(state="attached")
    assert answered.locator(".text").evaluate("(one) => one.textContent") == text


def test_a_corpus_is_deleted_on_the_second_press(page: "Page", http: httpx.Client, filled: str) -> None:
    page.goto(f"/?corpus={filled}")
    card = page.locator(".corpora li", has_text=filled)
    card.get_by_role("button", name=f"Delete {filled}", exact=True).click()
    card.get_by_role("button", name=f"Really delete {filled}").click()
    card.wait_for(state="detached")
    assert filled not in {one["name"] for one in http.get("/v1/corpora").json()["corpora"]}


def test_the_cluster_page_shows_every_shard(page: "Page", http: httpx.Client) -> None:
    page.goto("/cluster")
    page.get_by_text("all slots are served").wait_for()
    masters = [one for one in http.get("/v1/cluster").json()["nodes"] if one["role"] == "master"]
    assert page.locator("article.shard").count() == len(masters)
    assert page.locator("#slots i").count() >= len(masters)
    assert "ms" in page.locator("article.shard").first.inner_text()


def test_the_theme_is_kept(page: "Page") -> None:
    page.goto("/cluster")
    page.get_by_role("button", name="Theme: system").click()
    page.get_by_role("button", name="Theme: light").click()
    page.goto("/")
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(22, 22, 20)"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing(open_page: OpenPage, api: Server, filled: str, scheme: Any) -> None:
    axe_module = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe is not installed")
    page = open_page(api, color_scheme=scheme, bypass_csp=True, reduced_motion="reduce")
    for path, ready in (
        (f"/?corpus={filled}", "#corpora li"),
        (f"/?corpus={filled}&q={QUESTION}", ".answer-text"),
        (f"/document?corpus={filled}&id=mill.md&q={QUESTION}", ".walk button"),
        ("/cluster", "article.shard"),
    ):
        page.goto(path)
        page.locator(ready).first.wait_for()
        for summary in page.locator("main summary").all():
            summary.click()
        if page.locator(".why").count():
            page.locator(".why svg.graph").wait_for()
        found = axe_module.Axe().run(page).response["violations"]
        assert [(one["id"], [node["html"][:120] for node in one["nodes"]]) for one in found] == [], path


def test_the_page_asks_for_the_key_and_uses_it(open_page: OpenPage, locked: Server, filled: str, key_of: KeyOf) -> None:
    page = open_page(locked, f"/?corpus={filled}")
    page.get_by_label("Your key").fill(key_of(scopes=["ask"], corpora=[filled]))
    page.get_by_role("button", name="Use it").click()
    page.locator(".corpora li").first.wait_for()
    assert page.locator(".corpora li h3").first.inner_text() == filled


def test_a_question_in_the_address_is_answered_without_javascript(
    open_page: OpenPage, api: Server, filled: str
) -> None:
    page = open_page(api, f"/?corpus={filled}&q={QUESTION}", java_script_enabled=False)
    page.wait_for_url("**plain=1**")
    assert page.locator(".answer-text").inner_text() == "Ada Holm"
    assert page.locator("mark").inner_text() == "Ada Holm"
    page.get_by_label("Your question").fill("What is the cat called?")
    page.get_by_role("button", name="Ask", exact=True).click()
    page.locator(".answer").wait_for()


def test_a_hostile_document_stays_text_without_javascript(
    http: httpx.Client, open_page: OpenPage, api: Server, corpus: str
) -> None:
    text = "<img src=x> The captain of the ship is <b>Grace</b> & sons. </mark></blockquote><h1>Owned</h1>"
    http.post("/v1/documents", json={"id": "<i>'\"", "corpus": corpus, "title": "<u>Ship</u>", "text": text})
    page = open_page(api, f"/?corpus={corpus}&q=Who is the captain of the ship?", java_script_enabled=False)
    page.wait_for_url("**plain=1**")
    assert page.locator(".passage").inner_text() == text
    assert page.locator("main img, main u, main h1:has-text('Owned')").count() == 0
