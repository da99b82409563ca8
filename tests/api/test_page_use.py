"""Uses of the page beside asking: copying, judging, going through a document, corpora, the cluster, themes."""

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from shardqa_toolchain import squad
from tests.api.browser import PHONE
from tests.api.conftest import KeyOf, OpenPage, Server
from tests.nodes import wait_until
from tests.unit.house import ROOT

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


def stored(http: httpx.Client, corpus: str, name: str = "mill.md") -> str:
    """The file's text, as it can be asked."""
    return str(http.get(f"/v1/documents/{name}", params={"corpus": corpus}).json()["text"])


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


def test_a_row_of_a_table_is_quoted_as_its_cells_wherever_it_is_shown(
    page: "Page", http: httpx.Client, corpus: str
) -> None:
    table = "Supplier,City,Goods\nWeser Stahl,Bremen,steel sheets\nRuhr Guss,Essen,castings\n"
    http.put("/v1/files/suppliers.csv", params={"corpus": corpus}, content=table)
    page.goto(f"/?corpus={corpus}&q=Which goods has Weser Stahl?")
    page.locator(".row-of-table mark", has_text="steel sheets").wait_for()
    page.get_by_role("button", name="Cite", exact=True).click()
    wait_until(lambda: clipboard(page) == "“steel sheets” (suppliers.csv, row 2)")
    page.get_by_role("link", name="Passages").click()
    page.locator(".found td", has_text="Bremen").wait_for()
    page.set_viewport_size({"width": 360, "height": 700})
    width = "document.documentElement.scrollWidth"
    assert page.evaluate(width) <= 360
    page.get_by_role("link", name="Answer", exact=True).click()
    page.get_by_text("Why?").click()
    page.get_by_text("Details").click()
    page.locator(".ranks td", has_text="Bremen").wait_for()
    assert page.evaluate(width) <= 360
    assert "has City" not in page.locator("#result").inner_text()
    question = {"question": "What of Weser Stahl?", "corpus": corpus, "form": "sentences"}
    answer = http.post("/v1/ask", json=question).json()
    assert (answer["answer"], answer["parts"][0]["written"]) == ("Weser Stahl · Bremen · steel sheets", True)


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


def test_why_shows_words_and_ranks(answered: "Page") -> None:
    answered.get_by_text("Why?").click()
    answered.get_by_text(re.compile("Found by .*founded.*; the next best")).wait_for()
    answered.get_by_text("Details", exact=True).click()
    answered.locator(".ranks mark").first.wait_for()
    assert "found" in answered.get_by_role("region", name="The question’s words").inner_text()
    assert "founded" in answered.locator(".ranks mark").all_inner_texts()
    assert "read" in answered.get_by_role("region", name="How the passages rank").inner_text()


def test_several_corpora_are_asked_at_once_and_each_part_names_its_own(
    page: "Page", http: httpx.Client, filled: str
) -> None:
    second = f"{filled}-b"
    sent = {"id": "barn", "corpus": second, "text": "Cy Moen founded the barn of Otani in 1800."}
    assert http.post("/v1/documents", json=sent).status_code == 201
    page.goto(f"/?corpus={filled}")
    page.get_by_label("in", exact=True).select_option("several …")
    boxes = page.get_by_role("group", name="Corpora to ask")
    for wanted in (filled, second):
        boxes.get_by_role("checkbox", name=wanted, exact=True).check()
    for other in set(page.get_by_label("in", exact=True).input_value().split(",")) - {filled, second}:
        boxes.get_by_role("checkbox", name=other, exact=True).uncheck()
    page.get_by_label("Your question").fill(QUESTION)
    page.get_by_role("button", name="Ask", exact=True).click()
    page.locator(".answer-text", has_text="Ada Holm").wait_for()
    assert f"in {filled}" in page.locator(".facts").first.inner_text()
    page.locator(".answer .doc").first.click()
    page.get_by_role("link", name="Back to the answer").click()
    page.locator(".answer-text", has_text="Ada Holm").wait_for()
    assert page.get_by_label("in", exact=True).input_value() == f"{filled},{second}"


def test_titles_complete_what_is_typed(page: "Page", filled: str) -> None:
    page.goto(f"/?corpus={filled}")
    examples = page.locator("#examples button")
    examples.first.wait_for()
    assert examples.all_inner_texts() == ["Two mills", "The first mill", "The second mill"]
    question = page.get_by_role("combobox", name="Your question")
    question.press_sequentially("Who founded the mil")
    assert page.locator("#suggestions li").all_inner_texts() == ["Two mills", "The first mill", "The second mill"]
    for key in ("ArrowDown", "ArrowUp", "Enter"):
        question.press(key)
    assert question.input_value() == "Who founded the second mill"
    question.press("Enter")
    page.locator(".answer-text", has_text="Ruth Holm").wait_for()
    page.goto("/")
    page.get_by_label("in", exact=True).and_(page.locator(f"[data-chosen='{filled}']")).wait_for()
    question.press("ArrowDown")
    page.get_by_role("option", name="Who founded the second mill").click()
    page.locator(".answer-text", has_text="Ruth Holm").wait_for()


def test_the_document_shows_what_else_may_answer_and_its_outline(
    answered: "Page", http: httpx.Client, filled: str
) -> None:
    answered.goto(f"/document?corpus={filled}&id=mill.md&q=Who is Holm?")
    answered.get_by_role("button", name="Next passage").wait_for()
    number, of_all = map(int, answered.locator(".walk .quiet").inner_text().split(" of "))
    text = stored(http, filled)
    assert answered.locator(".text").evaluate("(one) => one.textContent") == text
    assert answered.locator(".ticks i").count() == answered.locator(".text mark").count() > 1
    answered.get_by_role("button", name="Next passage").click()
    answered.locator(".walk").get_by_text(f"{number % of_all + 1} of {of_all}").wait_for()
    answered.keyboard.press("p")
    answered.locator(".walk").get_by_text(f"{number} of {of_all}").wait_for()
    answered.get_by_text("Outline, 2 entries").click()
    answered.get_by_role("button", name="The second mill").click()
    assert answered.locator(".text").evaluate("(one) => one.textContent") == text


def test_a_question_that_goes_on_is_asked_of_the_document_before_and_can_be_asked_of_all(
    page: "Page", http: httpx.Client, filled: str
) -> None:
    http.post("/v1/documents", json={"id": "barn", "corpus": filled, "title": "Barn", "text": "The barn's cat is Tom."})
    page.goto(f"/?corpus={filled}&q={QUESTION}")
    page.locator(".answer-text", has_text="Ada Holm").wait_for()
    page.get_by_label("Your question").fill("And what is its cat called?")
    page.get_by_role("button", name="Ask", exact=True).click()
    page.get_by_role("note").get_by_text("Two mills").wait_for()
    assert page.locator(".answer-text").inner_text() == "Wilma"
    page.reload()
    page.get_by_role("button", name="Ask all documents").click()
    page.get_by_role("note").wait_for(state="detached")


def test_follow_ups_are_told_from_questions_that_stand_for_themselves(open_page: OpenPage, lonely: Server) -> None:
    """Asked of the document before, 41 of these 48 are answered right, as they stand 38, with its title in them 28."""
    page = open_page(lonely, "/")
    going_on = [
        page.evaluate(
            """async (texts) => {
                const { goesOn } = await import("/static/followup.js");
                return texts.filter(goesOn).length;
            }""",
            [json.loads(line)["question"] for line in path.read_text().splitlines()],
        )
        for path in (ROOT / "tests" / "quality" / "followups.jsonl", ROOT / "seeds" / "questions.jsonl")
    ]
    assert going_on == [47, 0]


def test_lists_and_pairs_of_a_document_stand_as_such_with_the_marks_in_them(
    page: "Page", http: httpx.Client, corpus: str
) -> None:
    text = "# Pets\n\nAllowed are:\n\n3. a cat\n4. four hens\n\n| Key | Value |\n|---|---|\n| Vet | Ada Holm |\n"
    assert http.put("/v1/files/pets.md", params={"corpus": corpus}, content=text).status_code == 201
    start = stored(http, corpus, "pets.md").index("hens")
    page.goto(f"/document?corpus={corpus}&id=pets.md&start={start}&end={start + 4}")
    page.locator(".text mark.current", has_text="hens").wait_for()
    items = page.locator(".text ol li")
    assert items.all_inner_texts() == ["a cat", "four hens"]
    assert [one.get_attribute("value") for one in items.all()] == ["3", "4"]
    assert items.nth(1).locator("mark").count() == 1
    assert page.locator(".text table").inner_text().split() == ["Key", "Value", "Vet", "Ada", "Holm"]


def test_a_corpus_is_deleted_unless_that_is_taken_back(page: "Page", http: httpx.Client, filled: str) -> None:
    page.goto(f"/?corpus={filled}")
    card = page.locator(".corpora li", has_text=filled)
    card.get_by_role("button", name=f"Delete {filled}", exact=True).click()
    page.get_by_role("button", name="Undo").click()
    card.get_by_role("button", name=f"Delete {filled}", exact=True).click()
    card.wait_for(state="detached")
    assert filled not in {one["name"] for one in http.get("/v1/corpora").json()["corpora"]}


def test_documents_of_a_corpus_are_found_opened_and_removed(page: "Page", http: httpx.Client, filled: str) -> None:
    for name in ("barn", "weir"):
        http.post("/v1/documents", json={"id": name, "corpus": filled, "text": f"The {name} stands by the river."})
    page.goto(f"/corpus/{filled}")
    page.get_by_text("3 documents, ").wait_for()
    page.locator("tbody tr").nth(2).wait_for()
    assert [row.inner_text().split()[0] for row in page.locator("tbody tr").all()] == ["barn", "Two", "weir"]
    page.get_by_label("Find").fill("WEI")
    remove = page.get_by_role("button", name="Remove weir", exact=True)
    remove.click()
    page.get_by_role("button", name="Undo").click()
    remove.click()
    page.get_by_label("Find").fill("")
    page.get_by_role("link", name="Two mills").click()
    page.get_by_role("heading", name="Two mills").wait_for()
    weir = f"/v1/documents/weir?corpus={filled}"
    wait_until(lambda: http.get(weir).status_code == 404, "the page that was left removes it")


ROWS: Any = {"name": "boats.csv", "mimeType": "text/csv", "buffer": b"Boat,Hull\nPetrel,oak\nTern,steel\nSkua,pine\n"}


def test_files_go_into_the_chosen_corpus_and_the_answer_stays(
    answered: "Page", http: httpx.Client, filled: str
) -> None:
    answered.evaluate(
        """() => {
            const transfer = new DataTransfer();
            transfer.items.add(new File(["Hull,Boat\\noak,Petrel\\npine,Skua"], "boats.csv"));
            for (const name of ["dragenter", "drop"])
                window.dispatchEvent(new DragEvent(name, {dataTransfer: transfer, bubbles: true, cancelable: true}));
        }"""
    )
    assert answered.locator("#drop p").text_content() == f"Drop the files into {filled}"
    answered.locator("#files-taken summary", has_text=f"boats.csv in {filled}, 2 rows").wait_for()
    assert http.get(f"/v1/corpora/{filled}").json()["corpus"]["documents"] == 3
    assert answered.locator(".answer-text").inner_text() == "Ada Holm"


def test_rows_of_a_file_are_one_line_and_what_is_ticked_is_removed(
    page: "Page", http: httpx.Client, filled: str
) -> None:
    page.goto(f"/corpus/{filled}")
    page.locator("#files").set_input_files(ROWS)
    page.get_by_role("button", name="boats.csv (3)").click()
    page.get_by_role("link", name="boats.csv, row 4").wait_for()
    assert page.locator("tbody tr").count() == 5
    page.get_by_role("link", name="boats.csv, row 4").click()
    page.get_by_role("link", name="All rows of boats.csv").click()
    page.get_by_role("button", name="boats.csv (3)").wait_for()
    assert page.locator("tbody tr").count() == 1
    page.get_by_label("Find").fill("")
    page.get_by_label("Select boats.csv", exact=True).check()
    for word in ("Undo", None):
        page.get_by_role("button", name="Remove 3 documents").click()
        page.get_by_role("button", name="boats.csv (3)").wait_for(state="detached")
        if word:
            page.get_by_role("button", name=word).click()
            page.get_by_label("Select boats.csv", exact=True).check()
    page.goto("about:blank")
    wait_until(lambda: http.get(f"/v1/corpora/{filled}").json()["corpus"]["documents"] == 1, "the rows are removed")


def test_the_cluster_page_shows_every_shard_and_the_last_hour(page: "Page", http: httpx.Client, filled: str) -> None:
    http.get("/v1/ask", params={"q": QUESTION, "corpus": filled})
    page.goto("/cluster")
    page.get_by_text("all slots are served").wait_for()
    masters = [one for one in http.get("/v1/cluster").json()["nodes"] if one["role"] == "master"]
    assert page.locator("tr.master").count() == len(masters)
    assert page.locator("#slots i").count() >= len(masters)
    assert " ms" in page.locator("tr.master").first.inner_text()
    assert re.search(r"\d MB\n.*\b0\n", page.locator("tr.master").first.inner_text().replace("\t", "\n"))
    page.get_by_text(re.compile(r"The last hour: [\d,]+ questions? answered, [\d,]+ not")).wait_for()
    assert page.locator("#hour i").count() == 60
    assert page.locator("#hour i").evaluate_all("all => Math.max(...all.map((one) => one.clientHeight))") > 30
    page.set_viewport_size({"width": 390, "height": 800})
    assert page.locator("#shards").evaluate("it => it.scrollWidth <= it.clientWidth")


def test_of_a_topic_the_passages_are_shown(page: "Page", filled: str) -> None:
    page.goto(f"/?corpus={filled}")
    topics = page.get_by_role("list", name="Topics").get_by_role("button")
    topics.first.wait_for()
    assert topics.all_inner_texts() == ["Two mills", "The first mill", "The second mill"]
    topics.nth(2).click()
    page.locator(".found mark", has_text="second").first.wait_for()


def test_the_page_of_a_pdf_is_enlarged_on_a_phone_with_the_answer_in_view(
    page: "Page", http: httpx.Client, corpus: str
) -> None:
    http.put("/v1/files/a.pdf", params={"corpus": corpus}, content=(ROOT / "tests/golden/pages.pdf").read_bytes())
    start = http.get("/v1/documents/a.pdf", params={"corpus": corpus}).json()["text"].index("by electricity")
    page.set_viewport_size({"width": 390, "height": 800})
    page.goto(f"/document?corpus={corpus}&id=a.pdf&start={start}&end={start + 14}")
    fit = page.get_by_role("button", name="Fit to width")
    fit.wait_for()
    assert page.locator(".frame").evaluate("frame => [frame.scrollLeft > 100, frame.scrollWidth]") == [True, 820]
    fit.click()
    assert page.locator(".frame").evaluate("frame => frame.scrollWidth === frame.clientWidth")
    assert not page.locator(".text mark.current").is_visible()
    page.get_by_role("button", name="Text", exact=True).click()
    page.locator(".text mark.current", has_text="by electricity").wait_for()


def test_pages_are_turned_and_an_answer_shows_its_own(page: "Page", http: httpx.Client, corpus: str) -> None:
    http.put("/v1/files/a.pdf", params={"corpus": corpus}, content=(ROOT / "tests/golden/pages.pdf").read_bytes())
    page.goto(f"/?corpus={corpus}&q=What is a burn?")
    page.get_by_role("link", name="Page 2, the answer marked").click()
    page.get_by_text("Page 2 of 4").wait_for()
    page.get_by_role("button", name="Next page").click()
    page.get_by_text("Page 3 of 4").wait_for()
    page.locator(".strip").scroll_into_view_if_needed()
    page.locator(".strip li:first-child img").wait_for()
    page.get_by_role("button", name="Page 1", exact=True).click()
    page.get_by_text("Page 1 of 4").wait_for()


def test_each_paragraph_has_its_own_direction(page: "Page", http: httpx.Client, corpus: str) -> None:
    text = "המצפה נוסד בשנת 1934.\n\nThe observatory stands on Mount Meron."
    http.post("/v1/documents", json={"id": "o", "corpus": corpus, "text": text})
    page.goto(f"/document?corpus={corpus}&id=o")
    page.locator(".text").wait_for()
    starts = """() => [...document.querySelector(".text").childNodes].flatMap((node) => {
        const range = document.createRange();
        const x = (at) => (range.setStart(node, at), range.setEnd(node, at + 1), range.getBoundingClientRect().x);
        return [0, node.length - 1].map(x);
    })"""
    first, stop = page.evaluate(starts)
    assert first > stop > 0, "Hebrew begins at the right, and the English full stop stands behind its sentence"
    assert page.locator("#document .text").evaluate("one => getComputedStyle(one).unicodeBidi") == "plaintext"


def test_the_theme_is_kept(page: "Page") -> None:
    page.goto("/cluster")
    page.get_by_role("button", name="Theme: system").click()
    page.get_by_role("button", name="Theme: light").click()
    page.goto("/")
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(22, 22, 20)"


# What has a name, a role and an order is the same in both schemes; only colours differ.
DARK = {"runOnly": {"type": "rule", "values": ["color-contrast"]}}


@pytest.mark.parametrize("screen", [{}, PHONE], ids=["desk", "phone"])
def test_axe_finds_nothing_by_day_or_by_night(
    open_page: OpenPage, api: Server, filled: str, screen: dict[str, Any]
) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe is not installed").Axe()
    page = open_page(api, bypass_csp=True, **screen)
    for path, ready in (
        (f"/?corpus={filled}", "#corpora li"),
        (f"/?corpus={filled}&q={QUESTION}", ".answer-text"),
        (f"/?corpus={filled}&q={QUESTION}&view=passages", ".found li"),
        (f"/?corpus={filled}&q={QUESTION}&present", ".working li.lit"),
        (f"/?corpus={filled}&q=How old is the penicillin of the mill?", ".answer-text"),
        (f"/document?corpus={filled}&id=mill.md&q=Who is Holm?", ".walk button"),
        ("/cluster", "tr.master"),
        ("/corpus/nothing", ".first"),
        (f"/document?corpus={filled}&id=nothing", "main > p a"),
        ("/nothing", ".box"),
        (f"/corpus/{filled}", "tbody tr"),
    ):
        page.goto(path)
        page.locator(ready).first.wait_for()
        for summary in page.locator("main summary").all():
            if summary.is_visible():  # in a hall none is
                summary.click()
        if page.locator(".why").is_visible():
            page.locator(".why details.more").evaluate("details => { details.open = true; }")
            page.locator(".why .ranks").wait_for()
        schemes: tuple[tuple[Any, dict[str, Any]], ...] = (("light", {}), ("dark", DARK))
        for scheme, rules in schemes:
            page.emulate_media(color_scheme=scheme)
            found = axe.run(page, options={"resultTypes": ["violations"], **rules}).response["violations"]
            assert [(one["id"], [node["html"][:120] for node in one["nodes"]]) for one in found] == [], (path, scheme)


def test_the_page_asks_for_the_key_and_uses_it(open_page: OpenPage, locked: Server, filled: str, key_of: KeyOf) -> None:
    page = open_page(locked, f"/?corpus={filled}")
    page.get_by_label("Your key").fill(key_of(scopes=["ask"], corpora=[filled]))
    page.get_by_role("button", name="Use it").click()
    page.locator(".corpora li").first.wait_for()
    assert page.locator(".corpora li h3").first.inner_text() == filled


@pytest.mark.parametrize("path", ["/", "/?q=Who&corpus=a", "/document?corpus=a&id=b", "/corpus/a", "/cluster"])
def test_without_javascript_a_page_says_so_and_names_a_command(open_page: OpenPage, lonely: Server, path: str) -> None:
    page = open_page(lonely, path, java_script_enabled=False)
    assert re.search(r"needs JavaScript.*curl .*ADDRESS/v1/", page.locator("main").inner_text())
    assert "…" not in page.locator("main").inner_text()


def test_what_speaks_against_an_answer_is_shown(page: "Page", filled: str) -> None:
    page.goto(f"/?corpus={filled}&q=Wer hat die Mühle gegründet?")
    assert "German" in page.get_by_role("note").inner_text()


def test_slots_of_a_node_that_does_not_answer_are_not_served(page: "Page", http: httpx.Client) -> None:
    told = http.get("/v1/cluster").json()
    master = next(node for node in told["nodes"] if node["role"] == "master")
    master["error"] = "it did not answer"
    page.route("**/v1/cluster", lambda route: route.fulfill(json=told))
    page.goto("/cluster")
    lost = sum(last - first + 1 for first, last in master["slots"])
    page.get_by_text(f"{lost:,} slots are served by nobody").wait_for()
    assert page.locator("#slots .free").count() == len(master["slots"])


def test_colours_of_others_are_kept(open_page: OpenPage, api: Server, filled: str) -> None:
    page = open_page(api, f"/?corpus={filled}&q={QUESTION}", forced_colors="active", color_scheme="dark")
    bar, ground = (f"getComputedStyle(document.querySelector('.gauge{part}')).backgroundColor" for part in (" i", ""))
    page.locator(".gauge").first.wait_for()
    assert page.evaluate(bar) != page.evaluate(ground)
    page.goto("/docs")
    page.locator("#problems td").first.wait_for()
    assert "dark-mode" in page.evaluate("document.documentElement.className")
    page.set_viewport_size({"width": 390, "height": 800})
    widths = page.locator("#problems tr:nth-child(2) td").evaluate_all("cells => cells.map((one) => one.offsetWidth)")
    assert min(widths) > 40


FOLDERS = [
    {"id": "leave", "source": "/srv/hr/leave.md", "text": "Eva Lund grants leave.", "metadata": {"tags": ["staff"]}},
    {"id": "water", "source": "/srv/mill/water.md", "text": "Ada Holm grants leave to the mill."},
]


def test_a_folder_is_chosen_before_the_question_and_stands_in_the_address(
    http: httpx.Client, open_page: OpenPage, api: Server, corpus: str
) -> None:
    http.post("/v1/documents", params={"corpus": corpus}, json=FOLDERS)
    page = open_page(api, f"/?corpus={corpus}")
    choice = page.get_by_label("Folder or tag")
    choice.locator("option", has_text="mill/ (1)").wait_for(state="attached")
    assert choice.locator("option").all_inner_texts() == ["all documents", "hr/ (1)", "mill/ (1)", "staff (1)"]
    choice.select_option("folder:/srv/mill/")
    page.get_by_label("Your question").fill("Who grants leave?")
    page.get_by_role("button", name="Ask", exact=True).click()
    page.locator(".answer-text", has_text="Ada Holm").wait_for()
    page.reload()
    page.locator(".answer-text", has_text="Ada Holm").wait_for()
    choice.select_option("tag:staff")
    page.locator(".answer-text", has_text="Eva Lund").wait_for()
    assert "part=tag%3Astaff" in page.url


def test_a_hall_sees_the_shards_at_work_and_a_code_of_the_questions_address(
    http: httpx.Client, open_page: OpenPage, api: Server, corpus: str
) -> None:
    http.post("/v1/documents", params={"corpus": corpus}, json=FOLDERS)
    page = open_page(api, f"/?corpus={corpus}&present", viewport={"width": 1920, "height": 1080})
    page.locator(".working li").nth(2).wait_for()
    page.get_by_label("Your question").fill("Who grants leave to the mill?")
    with page.expect_request(lambda one: "/qr.svg" in one.url) as asked:
        page.keyboard.press("Enter")
    page.get_by_role("img", name="Code of this question").wait_for()
    assert page.locator(".working li.lit").count() == 1
    assert "present" in page.url
    assert "present" not in asked.value.url
    assert page.locator(".answer-text").evaluate("one => parseFloat(getComputedStyle(one).fontSize)") > 40
    assert page.get_by_role("link", name="Cluster").is_hidden()


@pytest.mark.parametrize(
    ("name", "words", "label"),
    [("slides.pptx", "Subject 2", "slide 2"), ("sheets.xlsx", "Aaltje", "sheet Ferries")],
)
def test_a_mark_stands_under_the_name_of_its_slide_or_sheet(
    page: "Page", http: httpx.Client, corpus: str, name: str, words: str, label: str
) -> None:
    http.put(f"/v1/files/{name}", params={"corpus": corpus}, content=(ROOT / "tests" / "golden" / name).read_bytes())
    (listed,) = http.get("/v1/documents", params={"corpus": corpus}).json()["documents"]
    start = http.get(f"/v1/documents/{listed['id']}", params={"corpus": corpus}).json()["text"].index(words)
    page.goto(f"/document?corpus={corpus}&id={listed['id']}&start={start}&end={start + len(words)}")
    page.locator(".text mark.current").first.wait_for()
    in_order = page.locator(".text :is(.part, mark.current)").evaluate_all(
        "all => all.map((one) => one.matches('mark') || one.innerText.toLowerCase())"
    )
    assert in_order[in_order.index(True) - 1] == label.lower()
