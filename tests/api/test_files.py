"""PUT /v1/files: a file as it is, read by its suffix as the command line reads it."""

import io
import zipfile

import httpx
import pytest

from shardqa.loader import formats

PAGE = (
    b"<html><head><title>Mill</title><script>var x</script></head><body><h1>Mill</h1><p>Ada Holm built it in 1871.</p>"
)


def put(http: httpx.Client, corpus: str, name: str, content: bytes, **query: str) -> httpx.Response:
    return http.put(f"/v1/files/{name}", params={"corpus": corpus, **query}, content=content)


def test_a_page_is_read_as_a_page(http: httpx.Client, corpus: str) -> None:
    reply = put(http, corpus, "mill.html", PAGE)
    assert (reply.status_code, reply.json()["documents"][0]["document"]) == (201, "mill.html")
    stored = http.get("/v1/documents/mill.html", params={"corpus": corpus}).json()
    assert (stored["title"], stored["text"]) == ("Mill", "Mill\n\nAda Holm built it in 1871.")
    answer = http.get("/v1/ask", params={"q": "When was the mill built?", "corpus": corpus}).json()
    assert (answer["answer"], answer["place"]) == ("1871", {"headings": ["Mill"]})
    assert put(http, corpus, "mill.html", PAGE).status_code == 200


def test_another_text_of_the_same_name_replaces_the_upload_of_before(http: httpx.Client, corpus: str) -> None:
    put(http, corpus, "mill.txt", b"It was built in 1871.")
    assert put(http, corpus, "mill.txt", b"It was built in 1872.").status_code == 201
    http.post("/v1/documents", json={"id": "weir.txt", "corpus": corpus, "text": "The weir."})
    taken = put(http, corpus, "weir.txt", b"Another weir.")
    assert (taken.status_code, taken.json()["code"]) == (409, "id_taken")
    assert put(http, corpus, "weir.txt", b"Another weir.", replace="true").status_code == 201


def test_what_is_left_out_of_an_archive_is_told(http: httpx.Client, corpus: str) -> None:
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("a.txt", "The mill stands.")
        file.writestr("b.bin", b"\x00\x01")
    reply = put(http, corpus, "all.zip", archive.getvalue())
    assert reply.status_code == 207
    assert [one["document"] for one in reply.json()["documents"]] == ["all.zip/a.txt"]
    assert reply.json()["skipped"][0]["place"] == "all.zip/b.bin"


@pytest.mark.parametrize(
    ("name", "content", "why"),
    [("photo.png", b"x", "pictures hold no text"), ("empty.txt", b"", "no text"), ("torn.pdf", b"%PDF-", "not a PDF")],
)
def test_a_file_of_which_nothing_is_taken_is_a_problem(
    http: httpx.Client, corpus: str, name: str, content: bytes, why: str
) -> None:
    reply = put(http, corpus, name, content)
    assert (reply.status_code, reply.json()["code"]) == (422, "bad_document")
    assert why in reply.json()["detail"]


def test_the_formats_are_those_of_the_command_line(http: httpx.Client) -> None:
    found = http.get("/v1/formats").json()["formats"]
    assert [suffix for one in found for suffix in one["suffixes"]] == list(formats.SUFFIXES)
