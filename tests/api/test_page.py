"""The page in real Chromium: asking, hostile documents, one's own text, offsets, keyboard, small screens."""

import io
import random
import re
import zipfile
from typing import TYPE_CHECKING

import httpx
import pytest

from shardqa.cluster.local import LocalCluster
from tests.api.browser import PHONE
from tests.api.conftest import OpenPage, Server, StartApi
from tests.api.scans import scan
from tests.unit.house import ROOT

if TYPE_CHECKING:
    from playwright.sync_api import Page, Route

MILL = (
    "🌾🌾 The mill of Ōtani stands by the river. Ada Holm founded the mill in 1871 with money she had won at cards. "
    "In 1904 a flood carried its wheel to the sea."
)
SENTENCES = MILL[MILL.index("Ada") :]
HOSTILE = (
    "<script>document.title = 'owned'</script><img src=x onerror=\"document.title='owned'\"> "
    "The captain of the ship is <b>Grace</b> O'Malley & sons. </mark><style>*{display:none}</style>"
)
LAMPS = "The ship carries a red lamp, a green lamp and a white lamp."
SOURCE = "javascript:alert(1)"


@pytest.fixture
def filled(http: httpx.Client, corpus: str) -> str:
    """This test's corpus, with the mill and a hostile document."""
    documents = [
        {"id": "mill/1", "corpus": corpus, "title": "The mill", "text": MILL},
        {"id": "lamps", "corpus": corpus, "title": "Lamps", "text": LAMPS},
        {"id": "<i>ship</i>", "corpus": corpus, "title": "<u>The ship</u>", "text": HOSTILE, "source": SOURCE},
    ]
    assert http.post("/v1/documents", json=documents).status_code == 200
    return corpus


@pytest.fixture
def page(open_page: OpenPage, api: Server, filled: str) -> "Page":
    """The page of this test's corpus."""
    return open_page(api, f"/?corpus={filled}")


def ask(page: "Page", question: str) -> None:
    page.get_by_label("Your question").fill(question)
    page.get_by_role("button", name="Ask", exact=True).click()


def open_own_text(page: "Page") -> None:
    """It is open already where no corpus is there."""
    page.get_by_text("Ask your own text").wait_for()
    page.locator("#own").evaluate("own => { own.open = true }")


def test_an_answer_is_marked_in_its_passage(page: "Page") -> None:
    ask(page, "Who founded the mill?")
    answer = page.get_by_role("article", name="Answer", exact=True)
    answer.wait_for()
    assert answer.locator(".answer-text").inner_text() == "Ada Holm"
    assert answer.locator("mark").inner_text() == "Ada Holm"
    assert re.fullmatch(r"(Sure|Likely) · \d+ %", answer.locator("details.sure summary").inner_text())
    assert answer.locator(".passage").inner_text() == SENTENCES
    answer.get_by_role("button", name="Show more").click()
    assert answer.locator(".passage").inner_text() == MILL
    page.get_by_text("How it was found").click()
    assert page.get_by_role("region", name="Times").is_visible()
    assert page.get_by_role("region", name="Shards").is_visible()
    assert page.get_by_role("status").first.inner_text().startswith("Answer: Ada Holm.")
    assert "q=Who+founded+the+mill" in page.url


def test_an_answer_of_a_table_is_shown_in_its_row_and_not_in_the_sentence_made_of_it(
    open_page: OpenPage, api: Server, http: httpx.Client, corpus: str
) -> None:
    rows = b"Boat,Built,Hull\nPetrel,1994,oak\nHeron,2001,steel\n"
    assert http.post("/v1/files", params={"corpus": corpus}, files={"files": ("boats.csv", rows)}).is_success
    page = open_page(api, f"/?corpus={corpus}")
    ask(page, "Of what is the hull of the Petrel?")
    answer = page.get_by_role("article", name="Answer", exact=True)
    answer.wait_for()
    assert answer.get_by_role("row").all_inner_texts() == ["Boat\tBuilt\tHull", "Petrel\t1994\toak"]
    assert answer.locator("mark").inner_text() == "oak"
    assert "has Built" not in answer.inner_text()


def test_a_pinned_answer_says_so(page: "Page", http: httpx.Client, filled: str) -> None:
    pin = {"question": "Whom do I call at night?", "document": "mill/1", "quote": "Ada Holm"}
    assert http.put(f"/v1/corpora/{filled}/words", json={"pins": [pin]}).is_success
    ask(page, pin["question"])
    page.locator(".answer").get_by_text("Pinned", exact=True).click()
    page.get_by_text("Nothing was searched.").wait_for()
    assert page.get_by_text(re.compile("Why|How it was found|%")).count() == 0


def test_the_answer_leads_to_its_place_in_the_document(page: "Page") -> None:
    ask(page, "Who founded the mill?")
    page.get_by_role("link", name="The mill").first.click()
    page.locator(".text mark.current").wait_for()
    assert page.locator(".text mark.current").inner_text() == "Ada Holm"
    assert page.locator(".text").inner_text() == MILL
    page.get_by_role("link", name="Back to the answer").click()
    page.get_by_role("article", name="Answer", exact=True).wait_for()


def test_a_pdf_opens_at_its_page_with_the_answer_marked(page: "Page", http: httpx.Client, corpus: str) -> None:
    content = (ROOT / "docs" / "examples" / "handbook.pdf").read_bytes()
    assert http.put("/v1/files/pages.pdf", params={"corpus": corpus}, content=content).status_code == 201
    text = http.get("/v1/documents/pages.pdf", params={"corpus": corpus}).json()["text"]
    page.goto(f"/document?corpus={corpus}&id=pages.pdf&start={len(text) - 20}&end={len(text) - 12}")
    picture = page.get_by_role("figure").get_by_role("img")
    picture.wait_for()
    assert picture.evaluate("image => image.naturalWidth") > 1_000
    assert picture.evaluate("image => image.clientHeight < image.clientWidth"), "a short page ends with its text"
    assert text[-20:-12] in str(picture.get_attribute("alt"))
    with page.expect_download() as download:
        page.get_by_role("button", name="Download the file").click()
    assert download.value.suggested_filename == "pages.pdf"


def test_a_hostile_document_stays_text(page: "Page") -> None:
    ask(page, "Who is the captain of the ship?")
    page.locator("#result .passage").first.wait_for()
    assert page.locator("#result script, #result img, #result b > bdi, #result style, #result u").count() == 0
    page.get_by_role("link", name="<u>The ship</u>").first.click()
    page.locator(".text").wait_for()
    assert page.locator(".text").inner_text() == HOSTILE
    assert page.locator("main a[href^='javascript']").count() == 0
    assert page.title() == "<u>The ship</u> · shardqa"


def test_what_the_documents_do_not_say_is_said(page: "Page") -> None:
    ask(page, "What is the capital of Mongolia?")
    card = page.get_by_role("article", name="No answer")
    card.wait_for()
    assert "Your documents don’t mention capital or Mongolia." in card.inner_text()
    assert page.locator(".found li, .candidates li, .evidence").count() == 0, "nothing is shown for the answer"


def test_passages_are_a_view_of_their_own_with_filters(
    http: httpx.Client, open_page: OpenPage, api: Server, corpus: str
) -> None:
    texts = {"hr/leave.txt": "Leave is sixteen weeks.", "it/leave.md": "Leave the laptop here.", "it/old.md": "Rain."}
    sent = [{"id": name, "corpus": corpus, "text": text} for name, text in texts.items()]
    http.post("/v1/documents", json=sent)
    page = open_page(api, f"/?corpus={corpus}&q=How long is leave?")
    page.get_by_role("link", name="Passages", exact=True).click()
    page.get_by_role("heading", name="2 passages").wait_for()
    assert page.locator(".found mark").all_inner_texts() == ["Leave", "Leave"]
    page.get_by_role("combobox", name="Folder").select_option("it")
    assert page.locator(".found .passage").all_inner_texts() == ["Leave the laptop here."]
    page.reload()
    page.get_by_role("heading", name="2 passages").wait_for()


def test_items_of_a_list_lead_to_their_places_and_name_their_source_once(page: "Page") -> None:
    ask(page, "Which lamps are carried by the ship?")
    page.locator(".items li").nth(2).wait_for()
    assert page.locator(".items li").all_inner_texts() == ["a red lamp", "a green lamp", "a white lamp"]
    assert page.locator(".answer .facts .doc").count() == 1
    page.get_by_role("link", name="a green lamp").click()
    page.locator(".text mark.current", has_text="a green lamp").wait_for()


def test_sentences_that_come_nearest_are_shown_as_not_sure(page: "Page") -> None:
    ask(page, "How deep is the river at the mill?")
    card = page.get_by_role("article", name="No sure answer")
    card.wait_for()
    assert "No passage has deep. These sentences come nearest." in card.inner_text()
    card.get_by_role("link").first.click()
    page.locator(".text mark.current").wait_for()


def test_a_question_in_a_language_not_learnt_has_no_answer(page: "Page", http: httpx.Client, filled: str) -> None:
    http.post(
        "/v1/documents", json={"id": "zh", "corpus": filled, "text": "图书馆每天上午九点开门。图书馆馆长是王丽。"}
    )
    ask(page, "图书馆馆长是谁？")
    page.get_by_text("seems to be Chinese").wait_for()
    assert not page.locator(".answer .gauge").count()
    assert not page.locator("article mark").count()


def test_a_kept_answer_says_so_and_can_be_read_afresh(page: "Page") -> None:
    ask(page, "Who founded the mill?")
    page.get_by_text("How it was found").click()
    page.get_by_text("read just now").wait_for()
    page.reload()
    page.get_by_text("How it was found").click()
    page.get_by_text("kept in memory").wait_for()
    page.get_by_role("button", name="Read afresh").click()
    page.get_by_text("read just now").wait_for(state="attached")


def test_a_pasted_text_can_be_asked_and_taken_back(open_page: OpenPage, api: Server, corpus: str) -> None:
    page = open_page(api, "/")
    open_own_text(page)
    page.get_by_label("Text", exact=True).fill(
        "My aunt Wilma\nMy aunt Wilma keeps eleven goats and a parrot named Caesar."
    )
    page.locator("#into").fill(corpus)
    page.get_by_role("button", name="Add the text").click()
    page.get_by_text("Added My aunt Wilma").wait_for()
    assert page.locator("#corpus").input_value() == corpus
    ask(page, "What is the name of the parrot?")
    page.get_by_role("article", name="Answer", exact=True).wait_for()
    assert page.locator(".answer-text").inner_text() == "Caesar"
    page.get_by_role("button", name="Remove").click()
    page.get_by_text("Removed My aunt Wilma").wait_for()


def test_a_corpus_that_is_being_typed_is_not_replaced(
    open_page: OpenPage, api: Server, http: httpx.Client, corpus: str
) -> None:
    http.post("/v1/documents", json=[{"id": "bell", "corpus": corpus, "text": "Piet Vermeer cast the bell."}])
    page, held = open_page(api), list["Route"]()
    page.route("**/v1/corpora*", lambda route: held.append(route))
    with page.expect_request("**/v1/corpora*"):
        page.goto(f"/?corpus={corpus}", wait_until="commit")
    open_own_text(page)
    page.locator("#into").focus()
    held.pop().continue_()
    page.get_by_text("1 document").first.wait_for()
    assert page.locator("#into").input_value() == "mine"


def test_a_chosen_file_can_be_asked(open_page: OpenPage, api: Server, corpus: str) -> None:
    page = open_page(api, "/")
    open_own_text(page)
    page.locator("#into").fill(corpus)
    page.locator("#files").set_input_files(
        {"name": "bell.txt", "mimeType": "text/plain", "buffer": b"Piet Vermeer cast the bell."}
    )
    page.get_by_text("Added bell").wait_for()
    assert page.get_by_text("bell.txt", exact=True).filter(visible=True).count() == 1
    ask(page, "Who cast the bell?")
    page.locator(".answer-text").wait_for()
    assert page.locator(".answer-text").inner_text() == "Piet Vermeer"


# Puts the rows of a file one by one, two a second.
SLOW = """
import asyncio
from shardqa.api.authorized_documents import AuthorizedDocuments
from shardqa.api.routes import files
files.SLICE = 1
put = AuthorizedDocuments.put_each
async def slow(*given):
    await asyncio.sleep(0.5)
    return await put(*given)
AuthorizedDocuments.put_each = slow
"""


def test_rows_of_a_file_are_counted_and_cancelled_also_on_the_page_of_their_corpus(
    open_page: OpenPage, start_api: StartApi, cluster: LocalCluster, corpus: str
) -> None:
    server = start_api(SLOW, redis=cluster.seed())
    page = open_page(server, "/")
    open_own_text(page)
    page.locator("#into").fill(corpus)
    rows = "".join(f"Ada {n},rows\n" for n in range(200))
    page.locator("#files").set_input_files(
        {"name": "crew.csv", "mimeType": "text/csv", "buffer": f"Name,Task\n{rows}".encode()}
    )
    row = page.locator("#files-taken li", has_text="crew.csv")
    row.get_by_text(re.compile(r"[1-9]\d* of 200 texts")).wait_for(timeout=60_000)
    other = open_page(server, f"/corpus/{corpus}")
    other.locator("#tasks").get_by_text(re.compile(r"[1-9]\d* of 200 texts")).wait_for(timeout=60_000)
    other.get_by_role("button", name="Cancel crew.csv").click()
    row.get_by_text(re.compile("cancelled; at least .* of 200 texts")).wait_for(timeout=60_000)
    other.locator("#tasks li").wait_for(state="detached", timeout=60_000)
    other.locator("#documents tbody tr").first.wait_for(timeout=60_000)


def test_a_file_with_a_blank_page_is_taken_and_says_so_without_alarm(
    open_page: OpenPage, api: Server, corpus: str
) -> None:
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("a.txt", "Ada rows.")
        file.writestr("b.txt", " ")
    page = open_page(api, "/")
    open_own_text(page)
    page.locator("#into").fill(corpus)
    page.locator("#files").set_input_files(
        {"name": "boats.zip", "mimeType": "application/zip", "buffer": archive.getvalue()}
    )
    page.get_by_text("1 file has parts without text").wait_for()
    assert not page.locator("#added-status.bad, #files-taken li.bad").count()


@pytest.mark.parametrize("path", ["/", "/corpus/{}"])
def test_a_scan_is_read_on_a_press(
    open_page: OpenPage, api: Server, http: httpx.Client, corpus: str, path: str
) -> None:
    http.post("/v1/documents", json={"id": "first", "corpus": corpus, "text": "It begins."})
    page = open_page(api, path.format(corpus))
    if path == "/":
        open_own_text(page)
        page.locator("#into").fill(corpus)
    content = scan("The ferry carries 144 people.")
    page.locator("#files").set_input_files({"name": "ferry.pdf", "mimeType": "application/pdf", "buffer": content})
    page.get_by_text("no text layer").wait_for()
    page.get_by_role("button", name="by OCR").click()
    page.get_by_role("link", name="ferry").wait_for(timeout=200_000)  # recognizing is slow beside other work
    assert not page.get_by_text("no text layer").count()
    answer = http.get("/v1/ask", params={"q": "How many people does the ferry carry?", "corpus": corpus}).json()
    assert answer["answer"].startswith("144")


def test_a_dropped_file_that_is_no_text_is_refused_with_a_reason(open_page: OpenPage, api: Server) -> None:
    page = open_page(api, "/")
    page.evaluate(
        """() => {
            const transfer = new DataTransfer();
            transfer.items.add(new File([new Uint8Array([0xff, 0xfe, 0x00])], "photo.txt"));
            window.dispatchEvent(new DragEvent("drop", {dataTransfer: transfer, bubbles: true, cancelable: true}));
        }"""
    )
    page.get_by_text("1 file was not taken").wait_for()
    page.locator("#files-taken li.bad", has_text="photo.txt").get_by_text("invalid utf-16").wait_for()


def test_a_problem_is_shown_with_its_way_out(open_page: OpenPage, lonely: Server) -> None:
    page = open_page(lonely, "/?q=Who is there?")
    alert = page.get_by_role("alert")
    alert.wait_for()
    assert "A part of the cluster is missing" in alert.inner_text()
    assert "cluster_unavailable" in alert.inner_text()
    assert alert.get_by_role("button", name="Try again").is_visible()


def test_a_new_question_takes_the_place_of_one_under_way(page: "Page") -> None:
    for question in ("What happened in 1904?", "Who founded the mill?"):
        page.get_by_label("Your question").fill(question)
        page.get_by_label("Your question").press("Enter")
    page.locator(".answer-text", has_text="Ada Holm").wait_for()


# Keeps the list of corpora back until `letGo()` is called.
HOLD_CORPORA = """const real = fetch, held = new Promise((done) => { window.letGo = done; });
window.fetch = async (path, options) => {
    if (path === "/v1/corpora") await held;
    return real(path, options);
};"""


@pytest.fixture
def unfinished(open_page: OpenPage, api: Server, filled: str) -> "Page":
    """The page of a corpus, which waits for the list of them."""
    page = open_page(api)
    page.add_init_script(HOLD_CORPORA)
    page.goto(f"/?corpus={filled}", wait_until="domcontentloaded")
    return page


def test_a_question_asked_before_the_page_is_complete_is_not_lost(unfinished: "Page") -> None:
    ask(unfinished, "Who founded the mill?")
    unfinished.evaluate("letGo()")
    unfinished.locator(".answer-text", has_text="Ada Holm").wait_for()


def test_what_is_typed_before_the_page_is_complete_stays(unfinished: "Page") -> None:
    unfinished.get_by_label("Your question").fill("Who founded the mill?")
    unfinished.evaluate("letGo()")
    unfinished.locator("#size:not(:empty)").wait_for()
    unfinished.get_by_role("button", name="Ask", exact=True).click()
    unfinished.locator(".answer-text", has_text="Ada Holm").wait_for()


def test_the_keyboard_suffices(open_page: OpenPage, lonely: Server) -> None:
    page = open_page(lonely, "/?q=Who?")
    page.get_by_role("alert").wait_for()
    page.locator("body").click(position={"x": 5, "y": 400})
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.id") == "question"
    assert page.get_by_label("Your question").input_value() == "Who?"


def test_every_field_has_a_name(open_page: OpenPage, lonely: Server) -> None:
    page = open_page(lonely, "/")
    open_own_text(page)
    nameless = page.evaluate(
        """[...document.querySelectorAll("input, select, textarea")]
            .filter((field) => field.labels.length === 0)
            .map((field) => field.id)"""
    )
    assert nameless == []


@pytest.mark.parametrize("path", ["/", "/docs", "/cluster", "/corpus/x", "/document?corpus=x&id=y"])
def test_nothing_is_wider_than_a_phone(open_page: OpenPage, lonely: Server, path: str) -> None:
    page = open_page(lonely, path, **PHONE)
    page.wait_for_load_state("networkidle")
    assert page.evaluate("document.documentElement.scrollWidth") <= 360


def test_an_answer_fits_a_phone(open_page: OpenPage, api: Server, filled: str) -> None:
    page = open_page(api, f"/?corpus={filled}&q=Who founded the mill?", **PHONE)
    page.locator("#result .passage").first.wait_for()
    assert page.evaluate("document.documentElement.scrollWidth") <= 360


def test_the_description_lists_every_operation_and_code(open_page: OpenPage, lonely: Server) -> None:
    operations = httpx.get(f"{lonely.url}/openapi.json").json()["paths"]
    page = open_page(lonely, "/docs#unknown_corpus")
    page.get_by_role("heading", name="The HTTP API").wait_for()
    page.locator("tr:has(:target)").wait_for()
    assert "No such corpus" in page.locator("tr:has(:target)").inner_text()
    assert page.locator(".opblock").count() == sum(len(methods) for methods in operations.values())


def test_offsets_count_characters_as_python_does(open_page: OpenPage, lonely: Server) -> None:
    page = open_page(lonely, "/")
    chance = random.Random(7)
    texts = ["".join(chance.choices("aé水🌾𝕨\u0301\u200d\n", k=chance.randrange(30))) for _ in range(300)]
    spans = [sorted(chance.choices(range(len(text) + 1), k=2)) for text in texts]
    parts = page.evaluate(
        """async ([texts, spans]) => {
            const { split } = await import("/static/text.js");
            return texts.map((text, n) => split(text, ...spans[n]));
        }""",
        [texts, spans],
    )
    assert parts == [[t[:start], t[start:end], t[end:]] for t, (start, end) in zip(texts, spans, strict=True)]
